"""What every other package may use and that knows nothing of plans: types, exact sums, messages, events, engines."""
