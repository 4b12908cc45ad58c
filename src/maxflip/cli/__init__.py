"""The command line program `maxflip`."""
