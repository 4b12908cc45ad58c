"""Prices: budgets get prices, everyone buys their cheapest flip, and prices move until the market clears."""

from maxflip.solvers.prices.options import Prices

__all__ = ["Prices"]
