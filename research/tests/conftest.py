"""What the tests of the product have: the profiles of Hypothesis, the mark `long`."""

from tests.conftest import pytest_collection_modifyitems  # noqa: F401
