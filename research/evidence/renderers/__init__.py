"""One module for each page or topic: short functions from result files to text. A module added here is found."""
