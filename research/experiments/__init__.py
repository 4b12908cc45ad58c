"""Experiments with maxflip: the models they need, and what was measured. No part of the installed package."""
