"""What each tool of `peers` is asked, and how: a script for each, run by an interpreter that has the tool."""
