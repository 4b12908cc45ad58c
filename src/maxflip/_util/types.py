"""The arrays that everything is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]  # row numbers of samples
Mask = NDArray[np.bool_]
