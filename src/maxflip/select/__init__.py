"""Which candidates to pick: at most one per sample, within every budget."""
