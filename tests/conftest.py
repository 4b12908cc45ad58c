"""Hypothesis profiles and what every test may need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

LONG = bool(os.environ.get("MAXFLIP_LONG"))

settings.register_profile("short", deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("long", parent=settings.get_profile("short"), max_examples=2000)
settings.load_profile("long" if LONG else "short")

torch.set_num_threads(1)  # the tests themselves run side by side


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if LONG:
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: run by `make test-long`"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the public data sets; tests that need it say so by asking for it."""
    folder = os.environ.get("MAXFLIP_DATA")
    if not folder:
        pytest.skip("needs the public data sets: set MAXFLIP_DATA to their folder")
    return Path(folder)
