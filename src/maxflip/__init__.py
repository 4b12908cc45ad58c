"""maxflip: whom to pick and what to change so that as many as possible are predicted in the wanted class."""

__version__ = "0.1.0"
