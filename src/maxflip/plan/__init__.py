"""The answer: the samples picked and their changes, with all flips found, bounds and counts."""
