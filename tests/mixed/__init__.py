"""Small questions that mix all kinds of levers, beside the optimum by trying everything."""
