"""The constants of the paper's four algorithms that are no options: one frozen dataclass, and the one that is used.

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
    """What MS, BCMS, CCMS and KL need beyond their options. As a whole: docs/results/paper_solvers.md."""

    # BCMS: first probability of every sample. (algorithms, "First values")
    first_probability: float = 0.5
    # Standard deviation of the white noise on the first multipliers, as a part of them. (algorithms, "First values")
    multiplier_noise: float = 0.1
    # Standard deviations of the noise on the samples from which the search starts. (algorithms, "First values")
    start_noise: float = 0.01
    # What confidence lacks where the model has no answer. (not tuned)
    worst_lack: float = 2.0
    # Where its logarithm is taken, a probability keeps this far from 0 (and, for Bernoulli, from 1). (float64)
    least_probability: float = 1e-6
    # Numbers of Categorical noise made at a time: 32 MiB. (not tuned)
    noise_block: int = 2**22
    # Up to so many (1 GiB) are kept from a value to its gradient; more are made again. (not tuned)
    noise_kept: int = 2**27
    # Adam: decay of the mean of gradients ... (standard)
    adam_mean: float = 0.9
    # ... and of their squares. (standard)
    adam_squares: float = 0.999
    # Adam: added to the root of the squares; below the usual 1e-8, so that saturated samples still move. (not tuned)
    adam_floor: float = 1e-12
    # Times that an inner loop tells its progress. (not tuned)
    told: int = 20


DETAILS = PaperDetails()
