"""Notices for silent mistakes: each mistake is made on purpose and told; ordinary cohorts are told nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from torch import nn

from maxflip import Cohort, Ensemble, Nearest, Problem, SklearnClassifier, Tempered, TorchClassifier, solve
from maxflip.networks import GRUD
from maxflip.problem.sanity import input_notices, outcome_notices
from tests.conftest import LONG

PATIENTS = load_diabetes(scaled=False)
FEATURES = [*PATIENTS.feature_names]
X = PATIENTS.data
Y = (np.median(PATIENTS.target) > PATIENTS.target).astype(int)
DOUBTS = ("Columns", "columns lie", "saturated", "nearly the same", "already, so", "Nobody is")


def doubts(notices: Any) -> list[str]:
    return [text for text in notices if any(sign in text for sign in DOUBTS)]


def ask(classifier: Any, x: Any, **more: Any) -> Problem:
    names = x.features if isinstance(x, Cohort) else [f"x{i}" for i in range(x.shape[1])]
    return Problem(
        classifier=classifier, cohort=x, target=1, budgets=dict.fromkeys(names, 50.0), **{"margin": 0.1, **more}
    )


def fitted(scaler: Any) -> SklearnClassifier:
    return SklearnClassifier(make_pipeline(scaler, LogisticRegression(max_iter=5000)).fit(X, Y))


def with_norm(batches: int = 200) -> nn.Module:
    """A batch norm at the entrance that has seen the patients."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(X.shape[1]).double()
    for _ in range(batches):
        norm(torch.tensor(X))
    return nn.Sequential(norm, nn.Linear(X.shape[1], 8).double(), nn.Tanh(), nn.Linear(8, 2).double()).eval()


class Scaled(nn.Module):
    def __init__(self, *, names: list[str] | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mean, self.std = nn.Buffer(torch.tensor(X.mean(axis=0))), nn.Buffer(torch.tensor(X.std(axis=0)))
        self.net = nn.Sequential(nn.Linear(X.shape[1], 8), nn.Tanh(), nn.Linear(8, 2)).double()
        if names:
            self.feature_names = names

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.net((x - self.mean) / self.std)
        return z


def exported(net: nn.Module) -> TorchClassifier:
    rows = torch.export.Dim("rows")
    program = torch.export.export(net.eval(), (torch.tensor(X[:4]),), dynamic_shapes=({0: rows},))
    return TorchClassifier(program.module(), output="logits")


SCALED: dict[str, Callable[[], Any]] = {
    "standard": lambda: fitted(StandardScaler()),
    "robust": lambda: fitted(RobustScaler()),
    "batch norm": lambda: TorchClassifier(with_norm(), output="logits"),
    "buffers": lambda: TorchClassifier(Scaled().eval(), output="logits"),
    "exported": lambda: exported(Scaled()),
    "exported batch norm": lambda: exported(with_norm()),
    "ensemble": lambda: Ensemble([fitted(StandardScaler()), TorchClassifier(Scaled().eval(), output="logits")]),
    "tempered": lambda: Tempered(fitted(StandardScaler()), 1.5),
}
STANDARDISED = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("kind", SCALED)
def test_values_that_were_scaled_already_are_told(kind: str) -> None:
    notices = doubts(ask(SCALED[kind](), STANDARDISED).notices)
    assert notices
    assert all("far from what" in text and "do not scale them twice" in text for text in notices)


@pytest.mark.parametrize("kind", [*SCALED, "min-max", "max-abs"])
def test_one_column_in_other_units_is_told(kind: str) -> None:
    """Column 3, blood pressure, in Pa instead of mmHg."""
    ranges = {"min-max": MinMaxScaler(), "max-abs": MaxAbsScaler()}
    classifier = fitted(ranges[kind]) if kind in ranges else SCALED[kind]()
    x = X.copy()
    x[:, 3] *= 133.3
    notice = doubts(ask(classifier, x).notices)[0]
    assert "1 of 10 columns lies far" in notice
    assert f"'x3': its median is {np.median(x[:, 3]):.4g}" in notice


@pytest.mark.parametrize("kind", SCALED)
def test_permuted_columns_are_told_by_their_statistics(kind: str) -> None:
    """Age (mean 48) and S1 (cholesterol, 189) change places."""
    x = X.copy()
    x[:, [0, 4]] = X[:, [4, 0]]
    notice = doubts(ask(SCALED[kind](), x).notices)[0]
    assert notice.startswith("Columns seem to be in another order")
    assert "'x0' fits 'x4', 'x4' fits 'x0'" in notice


def test_permuted_columns_are_told_by_the_names_of_a_module() -> None:
    names = [FEATURES[1], FEATURES[0], *FEATURES[2:]]
    table = Cohort.table(X, features=FEATURES)
    own = TorchClassifier(Scaled(names=FEATURES).eval(), output="logits")
    other = TorchClassifier(Scaled(names=names).eval(), output="logits")
    assert not doubts(ask(own, table).notices)
    (notice,) = doubts(ask(other, table).notices)
    assert "'age' where the model has 'sex', 'sex' where the model has 'age'" in notice


def test_a_network_of_sequences_knows_its_shift_and_scale() -> None:
    rng = np.random.default_rng(0)
    raw = [rng.normal([50.0, 200.0], [5.0, 20.0], size=(6, 2)) for _ in range(30)]
    net = GRUD(2, hidden=4, classes=2, shift=[50.0, 200.0], scale=[5.0, 20.0]).eval()
    classifier = TorchClassifier(net, output="logits")
    scaled = [(x - [50.0, 200.0]) / [5.0, 20.0] for x in raw]
    swapped = [x[:, ::-1] for x in raw]
    assert not input_notices(classifier, Cohort.sequences(raw))
    (notice,) = input_notices(classifier, Cohort.sequences(scaled))
    assert "columns lie far from what the network's `shift` and `scale` expects" in notice
    (notice,) = input_notices(classifier, Cohort.sequences(swapped))
    assert "'x0' fits 'x1', 'x1' fits 'x0'" in notice


def test_a_forgotten_scaler_is_told() -> None:
    """The scaler is outside the model, as it often is: trained on scaled values, asked about raw ones."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2)).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(net(torch.tensor(STANDARDISED)), torch.tensor(Y)))
        optimizer.step()
    classifier = TorchClassifier(net.eval(), output="logits")
    sick = Y == 0
    (notice,) = doubts(solve(ask(classifier, X[sick]), Nearest()).notices)
    assert "The model is saturated: " in notice
    assert "a scaler may be missing" in notice
    assert not doubts(solve(ask(classifier, STANDARDISED[sick]), Nearest()).notices)


def test_a_constant_model_is_told() -> None:
    class Constant(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tensor([0.4, -0.4], dtype=x.dtype).expand(len(x), 2) + 0 * x[:, :1]

    heard: list[str] = []
    plan = solve(
        ask(TorchClassifier(Constant().eval(), output="logits", dtype=torch.float64), X),
        Nearest(),
        watch=lambda event: heard.append(str(getattr(event, "text", ""))),
    )
    (notice,) = doubts(plan.notices)
    assert "says nearly the same of everyone: 442 of 442 samples have confidence -0.379949" in notice
    assert notice in heard


def test_everyone_already_there_is_told() -> None:
    classifier = fitted(StandardScaler())
    there = classifier.probabilities(torch.tensor(X))[:, 1].numpy() > 0.6
    (notice,) = doubts(solve(ask(classifier, X[there]), Nearest()).notices)
    assert notice.startswith(f"All {there.sum()} samples are in the wanted class already")
    some = X[: 2 * there.sum()]
    assert not doubts(solve(ask(classifier, some), Nearest()).notices)


def test_nobody_there_is_told_only_where_nobody_can_be_flipped_either() -> None:
    classifier = SklearnClassifier(
        make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=2000, random_state=0)).fit(X, Y)
    )
    away = X[classifier.probabilities(torch.tensor(X))[:, 1].numpy() < 0.4]
    assert not doubts(solve(ask(classifier, away), Nearest()).notices)
    narrow = Problem(
        classifier=classifier, cohort=away, target=1, margin=0.1, budgets={"x1": 1.0}, limits={"x1": (1.0, 1.01)}
    )
    (notice,) = doubts(solve(narrow, Nearest()).notices)
    assert notice.startswith("Nobody is in the wanted class at the start, and no flip was found")


def healthy(seed: int) -> tuple[Any, np.ndarray[Any, Any]]:
    """Columns of many kinds, a model with its scaler inside, and an ordinary cohort: the part in the unwanted class, or
    the part with the largest values of some column, of new samples."""
    rng = np.random.default_rng(seed)
    features = int(rng.integers(2, 12))
    kinds = rng.integers(0, 5, features)
    size, shift = 10.0 ** rng.uniform(-3, 4, features), rng.normal(size=features)

    def draw(n: int) -> np.ndarray[Any, Any]:
        common = rng.normal(size=n)
        columns = [
            rng.normal(size=n) + common,
            rng.lognormal(sigma=1.5, size=n),
            (rng.random(n) < 0.2).astype(float),
            rng.poisson(0.7, n).astype(float),
            rng.standard_t(3, size=n),
        ]
        fresh = [columns[k] + 0.3 * rng.normal(size=n) * (k in (0, 1, 4)) for k in kinds]
        return (np.stack(fresh, axis=1) + shift) * size

    x = draw(2000)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    y = (z @ rng.normal(size=features) + 0.5 * rng.normal(size=2000) > 0).astype(int)
    if len(np.unique(y)) < 2:
        y[0] = 1 - y[0]
    scaler = [StandardScaler(), RobustScaler(), MinMaxScaler(), MaxAbsScaler()][seed % 4]
    if seed % 5 == 4:
        scaler = ColumnTransformer([("first", scaler, [0])], remainder="passthrough")
    model = SklearnClassifier(make_pipeline(scaler, LogisticRegression(max_iter=3000)).fit(x, y))
    new = draw(600)
    low = np.argsort(model.probabilities(torch.tensor(new))[:, 1].numpy())
    extreme = np.argsort(new[:, int(rng.integers(features))])
    return model, new[[low[:300], low[200:400], extreme[-100:], rng.permutation(600)[:30]][seed % 3 if seed % 7 else 3]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(3))
def test_ordinary_cohorts_are_told_nothing(part: int) -> None:
    for seed in range(40 * part, 40 * part + 40, 1 if LONG else 7):
        model, x = healthy(seed)
        told = doubts(ask(model, x).notices)
        assert not told, (seed, told)


@pytest.mark.filterwarnings("ignore")
def test_ordinary_plans_are_told_nothing() -> None:
    for seed in range(0, 60, 6 if LONG else 12):
        model, x = healthy(seed)
        p = model.probabilities(torch.tensor(x))[:, 1].numpy()
        if (p >= 0.55).all():
            continue
        told = doubts(solve(ask(model, x), Nearest()).notices)
        assert not told, (seed, told)


def test_a_confident_model_is_told_nothing() -> None:
    data = load_breast_cancer()
    model = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=400, random_state=0)).fit(
        data.data, data.target
    )
    sick = data.data[data.target == 0]
    assert not doubts(solve(ask(SklearnClassifier(model), sick), Nearest()).notices)


@pytest.mark.parametrize("batches", [0, 5])
def test_a_batch_norm_that_has_hardly_been_trained_says_nothing(batches: int) -> None:
    assert not doubts(ask(TorchClassifier(with_norm(batches), output="logits"), X).notices)


def test_a_batch_norm_further_inside_says_nothing() -> None:
    norm = nn.BatchNorm1d(10).double()
    for _ in range(200):
        norm(torch.tensor(STANDARDISED) * 3 + 40)
    net = nn.Sequential(nn.Linear(10, 10).double(), norm, nn.Linear(10, 2).double()).eval()
    assert not doubts(ask(TorchClassifier(net, output="logits"), X).notices)


def test_few_samples_are_told_nothing() -> None:
    x = X[:5].copy()
    x[:, 3] *= 133.3
    assert not doubts(solve(ask(fitted(StandardScaler()), x), Nearest()).notices)


def test_a_cohort_of_equal_samples_is_told_nothing() -> None:
    problem = ask(fitted(StandardScaler()), np.tile(X[:1], (30, 1)))
    same, none = np.full(30, -0.5), np.zeros(30, dtype=bool)
    assert not outcome_notices(problem.cohort, problem.goal, same, none, none, 30)
