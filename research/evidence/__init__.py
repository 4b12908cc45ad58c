"""What was measured, and the pages that say so: result files in docs/results/data, pages made from them."""
