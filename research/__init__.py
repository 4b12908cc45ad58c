"""What is measured of maxflip and how: benchmarks, the study, and the pages made of their results."""
