"""What each tool of benchmarks.peers is asked, and how: a script for each, run by an interpreter that has the tool."""
