"""Changes that hold: a flip must also pass when its change is carried out in part, or to rounded values.

Every requirement adds scenarios. A scenario turns the change d of a sample into the change that is carried out, and the
model sees x + that (float64). Each scenario stands by itself: nothing is rounded when only a part is carried out. The
full change is always judged too.

    Uptake(u):      share * d,   share = u + (1 - u) (k / 4) for k = 0, 1, 2, 3
    Rounded(steps): step * rint((x + d) / step) - x where d is not 0, for each feature with a step; d elsewhere

Every operation is one of float64, and rint rounds halves to the even neighbour: whoever repeats it gets the same bits.
Limits and directions hold for d itself. They are not applied to what is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.frozen import Frozen, FrozenMap, read_only
from maxflip._util.messages import did_you_mean, shown
from maxflip._util.types import Floats, Mask
from maxflip.data.derived import no_own
from maxflip.problem.limit import LARGEST, SMALLEST, is_size

POINTS = 4  # shares below 1 at which an Uptake is judged


@dataclass(frozen=True)
class Uptake:
    """A flip must also pass when only a share of every change is carried out.

    Judged at share, at 1, and at three evenly spaced points between: share + (1 - share) k / 4, k = 0, 1, 2, 3, 4.

    Args:
        share: in (0, 1].
    """

    share: float

    @property
    def shares(self) -> tuple[float, ...]:
        """Those below 1, ascending."""
        points = (self.share + (1.0 - self.share) * (k / POINTS) for k in range(POINTS))
        return tuple(point for point in points if point < 1.0)


@dataclass(frozen=True)
class Rounded:
    """A flip must also pass when the changed values of these features are rounded to multiples of a step.

    after = step * rint((before + change) / step); halves go to the even multiple. Values that do not change stay as
    they are. The solvers look for flips whose values are such multiples already, so that budgets count what is done.

    Args:
        steps: {feature: step > 0}.
    """

    steps: Mapping[str, float]


Requirement = Uptake | Rounded


def rounded(start: Floats, changes: Floats, step: Floats) -> Floats:
    """The change that is carried out when x + d is rounded.   start, changes (B, K)   step (K,): 0 where none is"""
    some = step > 0
    unit = np.where(some, step, 1.0)
    nearest = unit * np.rint((start + changes) / unit) - start
    return np.where(some & (changes != 0), nearest, changes)


@dataclass(frozen=True, eq=False)
class Scenarios(Frozen):
    """What flips must hold in, over K slots.

    requirements: as they were asked   shares: parts of a change below 1, ascending
    step (K,): what the value of a slot is rounded to, 0 where it is not; None: nothing is
    whole (K,): slots whose change is carried out as a whole or not at all, whatever the share: levers
    """

    requirements: tuple[Requirement, ...] = ()
    shares: tuple[float, ...] = ()
    step: Floats | None = None
    whole: Mask | None = None

    def carried_out(self, start: Floats, changes: Floats) -> Iterator[Floats]:
        """What is carried out of changes (B, K) in each scenario; the full change itself is not among them."""
        for share in self.shares:
            yield share * changes if self.whole is None else np.where(self.whole, changes, share * changes)
        if self.step is not None:
            done = rounded(start, changes, self.step)
            if not np.array_equal(done, changes):
                yield done


def read_must_hold(
    given: Any, features: Sequence[str], weighed: Collection[str], derived: Collection[str] = ()
) -> tuple[tuple[Requirement, ...], list[Fault]]:
    """must_hold of a Problem: an Uptake, a Rounded, or a list with at most one of each; and its faults."""
    if given is None:
        return (), []
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    faults: list[Fault] = []
    found: list[Requirement] = []
    for one in listed:
        if isinstance(one, Uptake):
            faults += _uptake_faults(one)
        elif isinstance(one, Rounded):
            faults += _rounded_faults(one, features, weighed, derived)
        else:
            wanted = "a list of Uptake(0.8) and Rounded({'bp': 1.0})"
            faults.append(about("must_hold", f"got {shown(one)}; wanted {wanted}."))
            continue
        if any(type(other) is type(one) for other in found):
            faults.append(about("must_hold", f"there are two of {type(one).__name__}. Keep one of them."))
        found.append(one)
    return () if faults else tuple(map(_plain, found)), faults


def steps_of(requirements: Sequence[Requirement]) -> Mapping[str, float]:
    """The steps of Rounded, by feature."""
    return next((one.steps for one in requirements if isinstance(one, Rounded)), {})


def twice_stepped(requirements: Sequence[Requirement], stepped: Collection[str]) -> list[Fault]:
    """Features that are rounded though their limits have steps."""
    says = "values that go by steps are not rounded. Keep one of the two."
    return [
        about(("must_hold", "rounded", name), says, ("limits", name, "step"))
        for name in steps_of(requirements)
        if name in stepped
    ]


def scenarios_of(
    requirements: Sequence[Requirement], features: Sequence[str], slot_feature: NDArray[np.int64], is_lever: Mask
) -> Scenarios:
    """slot_feature (K,): the feature of each slot   is_lever (K,): which of them are carried out as a whole"""
    shares = next((one.shares for one in requirements if isinstance(one, Uptake)), ())
    steps = steps_of(requirements)
    by_feature = np.array([steps.get(name, 0.0) for name in features])
    step = read_only(by_feature[slot_feature]) if steps else None
    return Scenarios(tuple(requirements), shares, step, is_lever if is_lever.any() else None)


def as_table(requirements: Sequence[Requirement]) -> dict[str, Any]:
    """As a job and summary.json have them: {"uptake": 0.8, "rounded": {"bp": 1.0}}, either of the two left out."""
    return {
        "uptake" if isinstance(one, Uptake) else "rounded": one.share if isinstance(one, Uptake) else dict(one.steps)
        for one in requirements
    }


def from_table(uptake: float | None = None, rounded: Mapping[str, float] | None = None) -> tuple[Requirement, ...]:
    """The other way."""
    asked: list[Requirement] = [] if uptake is None else [Uptake(uptake)]
    return (*asked, *([] if rounded is None else [Rounded(FrozenMap(rounded))]))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _uptake_faults(uptake: Uptake) -> list[Fault]:
    if _is_number(uptake.share) and 0 < uptake.share <= 1:
        return []
    return [wrong(("must_hold", "uptake"), uptake.share, "must be a number above 0 and at most 1.")]


def _rounded_faults(
    given: Rounded, features: Sequence[str], weighed: Collection[str], derived: Collection[str]
) -> list[Fault]:
    steps: Any = given.steps
    if not isinstance(steps, Mapping) or not steps:
        return [wrong(("must_hold", "rounded"), steps, "must be {feature: step} with at least one feature.")]
    faults = []
    for name, step in steps.items():
        place = ("must_hold", "rounded", str(name))
        if name not in features:
            faults.append(about(place, f"no feature is called {name!r}.{did_you_mean(name, features)}"))
        elif name in derived:
            faults.append(about(place, no_own("step")))
        elif name not in weighed:
            faults.append(
                about(place, "the feature draws on no budget, so it is frozen. Give it a budget, or leave it out.")
            )
        if not is_size(step):
            faults.append(wrong(place, step, f"must be a number from {SMALLEST:g} to {LARGEST:g}."))
    return faults


def _plain(given: Requirement) -> Requirement:
    """As plain numbers that cannot be written to."""
    if isinstance(given, Uptake):
        return Uptake(float(given.share))
    return Rounded(FrozenMap({name: float(step) for name, step in given.steps.items()}))
