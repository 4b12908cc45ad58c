"""Every gradient that the algorithms use, against differences of the Lagrangian that it is the gradient of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maxflip import BCMS, CCMS, KL, MS, Budget, Ensemble, Problem, TorchClassifier
from tests.examples import net_problem, small_net
from tests.paper.stage import chance, kl, ms

STEP, N = 1e-6, 9
RNG = np.random.default_rng(5)
U = RNG.normal(size=(N, 4)) * 0.3
LAMBDA, MU, PI = RNG.uniform(0.2, 2, 4), RNG.uniform(0.2, 2, N), RNG.uniform(0.1, 0.9, N)


def differences(value: Callable[[NDArray[np.float64]], float], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Central ones"""
    slope = np.empty_like(at)
    for i in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[i] = STEP
        slope[i] = (value(at + step) - value(at - step)) / (2 * STEP)
    return slope


def problems() -> dict[str, Problem]:
    net = TorchClassifier(small_net(4, 3, dtype=torch.float64), output="logits")
    other = TorchClassifier(small_net(4, 3, seed=1, dtype=torch.float64), output="logits")
    mixed = {
        "x0": 2.0,
        "hours": Budget(6.0, {"x0": 1.0, "x1": 0.5}, "absolute"),
        "x2": 1.0,
        "people": Budget(5, cost="count"),
    }
    shared: dict[str, Any] = {"features": 4}
    return {
        "one class": net_problem(N, classifier=net, **shared),
        "mixed budgets": net_problem(N, classifier=net, budgets=mixed, **shared),
        "two members": net_problem(N, classifier=Ensemble([net, other]), **shared),
        "set, worth": net_problem(N, classifier=net, target={0, 2}, worth=RNG.uniform(0.5, 3, N), **shared),
        "threshold": net_problem(N, classifier=net, margin=None, threshold=0.6, **shared),
        "decision": net_problem(
            N, classifier=TorchClassifier(small_net(4, 3, dtype=torch.float64), output="decision"), **shared
        ),
    }


every_problem = pytest.mark.parametrize("problem", problems().values(), ids=list(problems()))
UNITS: list[dict[str, Any]] = [{}, {"units": "standard", "residual": "relative"}]


def width(problem: Problem) -> int:
    return len(problem.actionable)


def near(found: torch.Tensor, wanted: NDArray[np.float64]) -> None:
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-6, atol=2e-8)


@every_problem
@pytest.mark.parametrize("options", UNITS, ids=["raw", "scale-free"])
def test_ms(problem: Problem, options: dict[str, Any]) -> None:
    """By X for any z, by lambda and by mu"""
    solver, u = MS(**options), U[:, : width(problem)]
    some = torch.arange(N) % 3 > 0

    def value(u: Any = u, lambda_: Any = LAMBDA, mu: Any = MU) -> float:
        there = ms(problem, solver, u=u, lambda_=lambda_, mu=mu)
        there.z = some
        return there.slopes(1).value

    here = ms(problem, solver, u=u, lambda_=LAMBDA, mu=MU)
    here.z = some
    m = len(here.search.budgets)
    near(here.uphill() * some[:, None], differences(lambda u: value(u=u), u))
    near(here.slopes(1).of_lambda, differences(lambda v: value(lambda_=v), LAMBDA)[:m])
    near(here.slopes(1).of_mu, differences(lambda v: value(mu=v), MU))


@every_problem
@pytest.mark.parametrize("options", UNITS, ids=["raw", "scale-free"])
def test_kl(problem: Problem, options: dict[str, Any]) -> None:
    solver, u = KL(a=0.3, **options), U[:, : width(problem)]

    def value(u: Any = u, lambda_: Any = LAMBDA, mu: Any = MU) -> float:
        return kl(problem, solver, u=u, lambda_=lambda_, mu=mu).slopes(1).value

    here = kl(problem, solver, u=u, lambda_=LAMBDA, mu=MU)
    m = len(here.search.budgets)
    near(here.slope(), differences(lambda u: value(u=u), u))
    near(here.slopes(1).of_lambda, differences(lambda v: value(lambda_=v), LAMBDA)[:m])
    near(here.slopes(1).of_mu, differences(lambda v: value(mu=v), MU))


CHANCES: list[dict[str, Any]] = [{"tau": 1.5}, {"units": "standard", "indicator": "relative", "omega": 0.7}]


@every_problem
@pytest.mark.parametrize("options", CHANCES, ids=["raw", "scale-free"])
@pytest.mark.parametrize(("kind", "pi"), [(BCMS, PI), (CCMS, PI / PI.sum())], ids=["BCMS", "CCMS"])
def test_chances(problem: Problem, kind: type[BCMS] | type[CCMS], pi: Any, options: dict[str, Any]) -> None:
    """With the noise of the end of an inner loop: by Pi, X, lambda and mu"""
    solver, u = kind(draws=6, **options), U[:, : width(problem)]

    def value(pi: Any = pi, u: Any = u, lambda_: Any = LAMBDA, mu: Any = MU) -> float:
        return chance(problem, solver, pi, u=u, lambda_=lambda_, mu=mu).slopes(1).value

    here = chance(problem, solver, pi, u=u, lambda_=LAMBDA, mu=MU)
    m = len(here.search.budgets)
    of_pi, of_u = here.uphill(1, 0)
    near(of_pi, differences(lambda v: value(pi=v), pi))
    near(of_u, differences(lambda v: value(u=v), u))
    near(here.slopes(1).of_lambda, differences(lambda v: value(lambda_=v), LAMBDA)[:m])
    near(here.slopes(1).of_mu, differences(lambda v: value(mu=v), MU))
    assert of_u.abs().max() > 1e-4
