"""Whether a cohort has the columns that a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence

from maxflip._util.messages import counted, listed
from maxflip.errors import ModelError


def check_columns(features: Sequence[str], width: int, names: Sequence[str] | None) -> None:
    """Raise ModelError unless the cohort's columns are those of the training, in that order.

    An array without names has the names x0, x1, ...; then only their number is checked.
    """
    unnamed = list(features) == [f"x{i}" for i in range(len(features))]
    if len(features) == width and (unnamed or not names or list(features) == list(names)):
        return
    trained = counted(width, "column") + (f": {listed(names)}" if names else "")
    order = " Put them in the model's order." if names and sorted(features) == sorted(names) else ""
    raise ModelError(f"the model was trained on {trained}; the cohort has {len(features)}: {listed(features)}.{order}")
