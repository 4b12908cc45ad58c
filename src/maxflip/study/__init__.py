"""What is made of several solves: resolve, frontier, insight, margins, settings of the paper's algorithms."""
