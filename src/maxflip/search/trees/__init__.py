"""The cheapest flip of each sample through a tree ensemble, at prices. Compiled by numba when it is first used."""

from maxflip.search.trees.search import Found, search

__all__ = ["Found", "search"]
