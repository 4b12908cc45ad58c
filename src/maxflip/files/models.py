"""Models from disk, after the audit: loading a model is running a program unless shown otherwise.

The wall itself stands in maxflip_wall, once, for the library and the auditor alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import maxflip_wall
from maxflip.classifiers import TorchClassifier
from maxflip.classifiers.torch_module import Output
from maxflip.errors import InputError, UnsafeError


def load_classifier(path: Path, *, output: Output, classes: Sequence[str] | None) -> TorchClassifier:
    try:
        loaded = maxflip_wall.load_pt2(path)
    except maxflip_wall.Refused as error:
        raise UnsafeError(str(error)) from error
    except maxflip_wall.Unreadable as error:
        raise InputError(str(error)) from error
    return TorchClassifier(loaded.module, output=output, classes=classes, dtype=loaded.dtype)
