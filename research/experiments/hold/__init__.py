"""Do the flips hold in retrained models? `program` says how it is asked."""
