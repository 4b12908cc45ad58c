"""Tree ensembles: one in-memory form for all libraries, its readers, and the adapter."""
