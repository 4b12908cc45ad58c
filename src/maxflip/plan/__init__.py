"""The answer: who is picked and what changes, with the flips, bounds and counts that belong to it."""
