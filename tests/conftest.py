"""Hypothesis profiles and what every test may need."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

LONG = bool(os.environ.get("MAXFLIP_LONG"))

# The short run is the same every time; chance belongs to the long one.
settings.register_profile(
    "short", deadline=None, derandomize=True, max_examples=10, suppress_health_check=list(HealthCheck)
)
settings.register_profile("long", parent=settings.get_profile("short"), derandomize=False, max_examples=2000)
settings.load_profile("long" if LONG else "short")

torch.set_num_threads(1)  # the tests themselves run side by side


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if LONG:
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: run by `make test-long`"))
