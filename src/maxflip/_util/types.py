"""Type aliases of arrays, and of the outputs of models."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]  # row numbers of samples
Mask = NDArray[np.bool_]
Scores = Literal["logits", "probabilities", "decision"]
