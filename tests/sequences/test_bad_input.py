"""Sequences that are wrong or doubtful: each is refused or told of with its place, before anything is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from maxflip import Budget, Cohort, InputError, ModelError, Problem, ProblemError, TorchClassifier, resolve, solve
from maxflip.data.sequences import read_sequences
from maxflip.networks import GRUD
from tests.sequences.examples import LastStep, Total, ragged_problem

ONE = [np.ones((2, 1))]
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "complex numbers": ({"values": [np.array([[1 + 2j]])]}, "values: sequence 1: got .*; wanted numbers"),
    "texts": ({"values": [[["1.5"]]]}, "values: sequence 1: got .*; wanted numbers"),
    "dates": (
        {"values": ONE, "times": [np.array(["2020-01-01", "2021-01-01"], dtype="M8[s]")]},
        "times: sequence 1: got .*; wanted numbers",
    ),
    "no features": ({"values": [np.ones((2, 0))]}, "values: there are no features"),
    "static names that are no texts": (
        {"values": ONE, "static": [[1.0]], "static_features": [1]},
        r"static_features: got \[1\]; wanted a list of names",
    ),
    "a number as static names": (
        {"values": ONE, "static": [[1.0]], "static_features": 5},
        "static_features: got 5; wanted a list of names",
    ),
    "a hidden time": (
        {"values": ONE, "times": [np.ma.masked_array([1.0, 2.0], mask=[False, True])]},
        "times: sequence 1, step 1: nan; times must be finite",
    ),
    "time that goes back by little": (
        {"values": ONE, "times": [[1700000000.5, 1700000000.25]]},
        "step 1: time goes backwards, 1700000000.25 after 1700000000.5",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    given, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        Cohort.sequences(**given)


def test_what_is_masked_is_missing() -> None:
    masked = np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]])
    np.testing.assert_array_equal(Cohort.sequences([masked]).values, [[1.0], [np.nan]])


def test_of_many_faults_ten_are_put_into_words() -> None:
    """A filled-in array beside its mask has millions of them."""
    asked = []

    def who(j: int) -> str:
        asked.append(j)
        return f"sequence {j + 1}"

    x, mask = [np.zeros((50, 4))] * 30, [np.zeros((50, 4))] * 30
    _, faults = read_sequences(x, mask, None, None, features=None, static_features=None, who=who)
    assert faults[-1] == "... and 5,990 more of this kind."
    assert len(asked) < 20


def test_a_mask_of_unequal_rows_is_named() -> None:
    with pytest.raises(ProblemError, match=r"steps: sequence 1: .*; wanted true or false for each of its steps"):
        ragged_problem(1, 1, cohort=Cohort.sequences(ONE), steps=[[[True], [True, False]]])


class ReadsPadding(nn.Module):
    """The last state of a padded batch, whatever the lengths."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.cell, self.head = nn.GRU(2, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        return self.head(self.cell(x)[0][:, -1])  # type: ignore[no-any-return]


def test_a_model_that_reads_padding_is_refused_even_if_nearly_all_are_equally_long() -> None:
    """One short sequence in two thousand, far from the first."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(3 if j == 1234 else 9, 2)) for j in range(2000)]
    with pytest.raises(ModelError, match=r"depends on the other rows.*padding: read the state of step length - 1"):
        Problem(
            classifier=TorchClassifier(ReadsPadding(), output="logits"),
            cohort=Cohort.sequences(values),
            target=1,
            margin=0.1,
            steps="all",
            budgets={"x0": 1.0},
        )


def test_a_budget_for_a_feature_without_places_is_refused() -> None:
    """It would be read, shown and never used."""
    problem = Problem(
        classifier=TorchClassifier(Total([1.0, 1.0]), output="logits"),
        cohort=Cohort.sequences([np.full((2, 2), -1.0)]),
        target=1,
        margin=0.1,
        steps="all",
        budgets={"x0": 0.1},
    )
    with pytest.raises(ProblemError, match=r"the feature 'x1' draws on no budget of this problem.*new Problem"):
        resolve(problem, solve(problem), budgets={"x1": Budget(99.0)})


@pytest.mark.parametrize(("dtype", "is_told"), [(torch.float32, True), (torch.float64, False)])
def test_times_that_the_model_cannot_tell_apart_are_told_of(dtype: torch.dtype, is_told: bool) -> None:
    """Seconds since 1970, in float32: steps of up to 128 seconds are as good as none."""
    net = LastStep(nn.Linear(1, 2, dtype=dtype))
    cohort = Cohort.sequences([np.ones((3, 1))], times=[[1.7e9, 1.7e9 + 60, 1.7e9 + 3600]])
    problem = ragged_problem(1, 1, classifier=TorchClassifier(net, output="logits"), cohort=cohort)
    words = "Times as large as 1.7e+09 are rounded by the model's float32: 1 step cannot be told"
    assert any(words in notice for notice in problem.notices) == is_told


@pytest.mark.parametrize(
    ("names", "static", "words"),
    [
        (["glucose", "bp"], 0, "takes 2 features: 'glucose', 'bp'; the cohort has 2: 'bp', 'glucose'. Put them in"),
        (3, 0, "takes 3 features; the cohort has 2: 'bp', 'glucose'"),
        (2, 2, "takes 2 static features; the cohort has 1: 'age'"),
        (2, ["weight"], "takes 1 static features: 'weight'; the cohort has 1: 'age'"),
    ],
)
def test_a_network_of_other_features_is_refused(names: Any, static: Any, words: str) -> None:
    """In another order too, in which it would answer, and wrongly."""
    cohort = Cohort.sequences([np.ones((2, 2))], features=["bp", "glucose"], static=[[50.0]], static_features=["age"])
    classifier = TorchClassifier(GRUD(names, 4, 2, static), output="logits")
    with pytest.raises((ModelError, ProblemError), match=words):
        ragged_problem(1, 2, classifier=classifier, cohort=cohort, budgets={"bp": 1.0})


@pytest.mark.parametrize("features", [["bp", "glucose"], None])
def test_a_network_of_the_same_features_is_taken(features: Any) -> None:
    classifier = TorchClassifier(GRUD(["bp", "glucose"], 4, 2, ["age"]), output="logits")
    cohort = Cohort.sequences([np.ones((2, 2))], features=features, static=[[50.0]])
    problem = ragged_problem(1, 2, classifier=classifier, cohort=cohort, budgets={cohort.features[0]: 1.0})
    assert problem.cohort is cohort


def test_frames_name_their_features_and_must_agree() -> None:
    """In another order of columns, values of one feature would be taken for those of another."""
    one, other = pd.DataFrame({"bp": [120.0], "glucose": [7.0]}), pd.DataFrame({"glucose": [6.0], "bp": [110.0]})
    assert Cohort.sequences([one, one]).features == ("bp", "glucose")
    with pytest.raises(InputError, match="sequence 2: has the columns 'glucose', 'bp'; wanted 'bp', 'glucose'"):
        Cohort.sequences([one, other])
    with pytest.raises(InputError, match="sequence 1: has the columns 'glucose', 'bp'; wanted 'bp', 'glucose'"):
        Cohort.sequences([other], features=["bp", "glucose"])


def test_a_frame_of_static_features_goes_by_its_index() -> None:
    frame = pd.DataFrame({"age": [80.0, 20.0]}, index=["S-2", "S-1"])
    ragged = Cohort.sequences([np.ones((1, 1))] * 2, ids=["S-1", "S-2"], static=frame).ragged
    assert ragged is not None
    assert (ragged.static.tolist(), ragged.static_features) == ([[20.0], [80.0]], ("age",))
    plain = Cohort.sequences([np.ones((1, 1))] * 2, ids=["S-1", "S-2"], static=frame.reset_index(drop=True)).ragged
    assert plain is not None
    assert plain.static.tolist() == [[80.0], [20.0]]
    with pytest.raises(InputError, match="static: its index is neither the ids nor 0, 1"):
        Cohort.sequences([np.ones((1, 1))] * 2, ids=["S-1", "S-3"], static=frame)
