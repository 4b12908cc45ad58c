"""Do the flips hold in models that were learned anew? `program` says how it is asked."""
