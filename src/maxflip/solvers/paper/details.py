"""The constants of the paper's four algorithms that are no options: a frozen dataclass and its instance.

Every comment ends with where the value comes from:

    (algorithms)  docs/algorithms.md states it, under the name in quotation marks
    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic
    (not tuned)   no measurement of this value alone is known
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PaperDetails:
    """Constants of MS, BCMS, CCMS and KL. As a whole: docs/results/paper_solvers.md."""

    # BCMS: first probability of every sample. (algorithms, "First values")
    first_probability: float = 0.5
    # Standard deviation of the white noise on the first multipliers, as a part of them. (algorithms, "First values")
    multiplier_noise: float = 0.1
    # Standard deviations of the noise on the samples from which the search starts. (algorithms, "First values")
    start_noise: float = 0.01
    # Shortfall s if the model's output is not finite. (not tuned)
    worst_lack: float = 2.0
    # Least distance of a probability from 0 (for Bernoulli, from 1 too) before its logarithm is taken. (float64)
    least_probability: float = 1e-6
    # Numbers of Categorical noise generated at a time: 32 MiB. (not tuned)
    noise_block: int = 2**22
    # Numbers, at most, that are kept for the gradient (1 GiB); more are generated again. (not tuned)
    noise_kept: int = 2**27
    # Adam: decay of the mean of gradients ... (standard)
    adam_mean: float = 0.9
    # ... and of their squares. (standard)
    adam_squares: float = 0.999
    # Adam: added to the root of the squares; below the usual 1e-8, so that saturated samples still move. (not tuned)
    adam_floor: float = 1e-12
    # Progress reports per inner loop. (not tuned)
    told: int = 20


DETAILS = PaperDetails()
