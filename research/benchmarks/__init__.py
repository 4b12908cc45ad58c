"""What the solvers and searches find and take, beside each other: `python -m research.benchmarks.NAME`."""
