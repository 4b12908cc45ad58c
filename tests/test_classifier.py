"""TorchClassifier: any output, dtype and class count; linear ones recognised; the user's model left as found."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from maxflip import InputError, ModelError, Problem, ResourceError, SklearnClassifier, TorchClassifier, solve
from maxflip.data.sample import Sample
from maxflip.models import guard_of, probe
from tests.examples import linear_net, small_net

X = np.random.default_rng(0).normal(size=(300, 4))


def probed(module: Any, output: Any = "logits", **options: Any) -> Any:
    return probe(TorchClassifier(module, output=output, **options), Sample.of_table(X), lambda j: f"row {j + 1}")


class Wrapped(nn.Module):
    """net, then `then`."""

    def __init__(self, then: Callable[[torch.Tensor], Any], features: int = 4) -> None:
        super().__init__()
        self.net, self.then = small_net(features), then

    def forward(self, x: torch.Tensor) -> Any:
        return self.then(self.net(x))


# --- the contract, and its breaches ---


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("output", ["logits", "probabilities"])
def test_good_models_pass(classes: int, dtype: torch.dtype, output: str) -> None:
    net = small_net(4, classes, dtype=dtype)
    module = nn.Sequential(net, nn.Softmax(dim=1)) if output == "probabilities" else net
    result = probed(module, output)
    assert result.classes == classes
    classifier = TorchClassifier(module, output=output)  # type: ignore[arg-type]
    p = classifier.probabilities(torch.tensor(X))
    assert p.dtype == torch.float64
    assert p.shape == (300, classes)
    tolerance = 0.05 if dtype == torch.bfloat16 else 1e-6
    torch.testing.assert_close(classifier.log_probabilities(torch.tensor(X)).exp(), p, atol=tolerance, rtol=0)
    assert result.rounding[0].guard(0.0) >= {torch.float64: 1e-9, torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]


class Counter(nn.Module):
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        result: torch.Tensor = self.net(x)
        return result


class Mutating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.requires_grad:
            x *= 2.0
        result: torch.Tensor = self.net(x)
        return result


class NoGradient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            result: torch.Tensor = self.net(x)
            return result


def exported(net: nn.Module, features: int, any_rows: bool = True) -> nn.Module:
    shapes = ({0: torch.export.Dim("rows")},) if any_rows else None
    return torch.export.export(net.eval(), (torch.zeros(2, features),), dynamic_shapes=shapes).module()


def raises_on_one_row(z: torch.Tensor) -> torch.Tensor:
    if len(z) == 1:
        raise RuntimeError("one row is too few")
    return z


def raises_on_odd_rows(z: torch.Tensor) -> torch.Tensor:
    if len(z) > 1 and len(z) % 2:
        raise ValueError("in pairs, please")
    return z


def leaves(z: torch.Tensor) -> torch.Tensor:
    sys.exit(len(z))


class Remembering(nn.Module):
    """A buffer that appears, grows or goes, or a part that is added, when the model is called."""

    seen: torch.Tensor | None

    def __init__(self, how: str) -> None:
        super().__init__()
        self.net, self.how = small_net(4), how
        self.register_buffer("seen", torch.zeros(0, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "appears":
            self.register_buffer("last", x.detach().clone())
        elif self.how == "grows" and self.seen is not None:
            self.seen = torch.cat([self.seen, x.detach()])
        elif self.how == "grows in place" and self.seen is not None:
            self.seen.resize_(len(self.seen) + 1, 4).zero_()
        elif self.how == "goes":
            self.seen = None
        elif self.how == "part":
            self.extra = nn.Linear(1, 1)
        result: torch.Tensor = self.net(x)
        return result


BREACHES: list[tuple[str, Any, str, list[str]]] = [
    ("logits as probabilities", small_net(4), "probabilities", ["Set output='logits'"]),
    ("rows sum to more", Wrapped(lambda z: torch.softmax(z, 1) * 0.9), "probabilities", ["rows sum to 0.9"]),
    ("one column", Wrapped(lambda z: z[:, :1]), "logits", ["(256, 1)", "one logit z"]),
    ("no columns", Wrapped(lambda z: z[:, 0]), "logits", ["(256,)", "one logit z"]),
    ("transposed", Wrapped(lambda z: z[:, :1].T), "logits", ["(1, 256)"]),
    ("tuple", Wrapped(lambda z: (z, z)), "logits", ["returned tuple", "(256, classes)"]),
    ("dict", Wrapped(lambda z: {"logits": z}), "logits", ["returned dict"]),
    ("integers", Wrapped(lambda z: z.long()), "logits", ["torch.int64"]),
    ("NaN", Wrapped(lambda z: torch.where(z[:, :1] > 0, z, torch.nan)), "logits", ["not finite", "row "]),
    ("random", Wrapped(lambda z: z + torch.rand_like(z)), "logits", ["changes between two calls"]),
    ("row coupling", Wrapped(lambda z: z - z.mean(dim=0)), "logits", ["other rows of its batch"]),
    ("ranking", Wrapped(lambda z: z + z.argsort(dim=0).to(z.dtype)), "logits", ["other rows of its batch"]),
    ("mutation", Mutating(), "logits", ["changes its input in place"]),
    ("state", Counter(), "logits", ["changes its own buffers"]),
    ("no gradient", NoGradient(), "logits", ["gives no gradient"]),
    ("detached", Wrapped(lambda z: z.detach()), "logits", ["gives no gradient"]),
    (
        "steps on a slope",
        Wrapped(lambda z: torch.round(9 * z) + 1e-30 * z),
        "logits",
        ["gradient is as good as zero although"],
    ),
    ("piecewise constant", Wrapped(torch.round), "logits", ["gradient is as good as zero although"]),
    (
        "raises",
        Wrapped(lambda z: z @ torch.zeros(5, 2)),
        "logits",
        ["raised RuntimeError on a batch of shape (256, 4)"],
    ),
    (
        "wrong width",
        small_net(5),
        "logits",
        ["raised RuntimeError", "(256, 4)", "first linear layer takes 5 features; the cohort has 4"],
    ),
    (
        "wrong width, exported",
        partial(exported, small_net(5), 5),
        "logits",
        ["(256, 4)", "exported for 5 features; the cohort has 4"],
    ),
    ("two rows only, exported", partial(exported, small_net(4), 4, any_rows=False), "logits", ["Dim('rows')"]),
    ("one row refused", Wrapped(raises_on_one_row), "logits", ["(1, 4)", "one row is too few"]),
    ("odd rows refused", Wrapped(raises_on_odd_rows), "logits", ["raised ValueError on a batch of shape (3, 4)"]),
    ("sys.exit", Wrapped(leaves), "logits", ["raised SystemExit on a batch of shape (256, 4)"]),
    (
        "rounded probabilities",
        Wrapped(lambda z: torch.softmax(torch.round(9 * z), 1)),
        "probabilities",
        ["good as zero"],
    ),
    (
        "finely rounded, saturated",
        Wrapped(lambda z: torch.softmax(torch.round(1e4 * z), 1)),
        "probabilities",
        ["gradient is as good as zero although"],
    ),
    *(
        (f"memory, {how}", Remembering(how), "logits", ["changes its own buffers"])
        for how in ("appears", "grows", "grows in place", "goes", "part")
    ),
]


@pytest.mark.parametrize(("module", "output", "parts"), [b[1:] for b in BREACHES], ids=[b[0] for b in BREACHES])
def test_breaches_are_named(module: Any, output: Any, parts: list[str]) -> None:
    """module: or what makes it, where that takes its time"""
    with pytest.raises(ModelError) as caught:
        probed(module() if isinstance(module, partial) else module, output)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.exit_code == 3


def test_the_number_of_class_names_must_fit() -> None:
    with pytest.raises(ModelError, match="2 columns, but 3 classes"):
        probed(small_net(4), classes=["a", "b", "c"])


def test_a_stateful_model_gets_its_buffers_back() -> None:
    module = Counter()
    module.calls += 5
    with pytest.raises(ModelError):
        probed(module)
    assert float(module.calls) == 5.0


@pytest.mark.parametrize("how", ["appears", "grows", "grows in place", "goes", "part"])
def test_a_remembering_model_forgets(how: str) -> None:
    module = Remembering(how)
    with pytest.raises(ModelError):
        probed(module)
    assert list(module.state_dict()) == ["seen", *(f"net.{name}" for name in module.net.state_dict())]
    assert module.seen is not None
    assert module.seen.shape == (0, 4)


def test_a_model_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["maxflip.models.probe"], "PATIENCE", 0.05)
    release = threading.Event()

    def hang(z: torch.Tensor) -> torch.Tensor:
        release.wait()
        return z

    net = Wrapped(hang).train()
    with pytest.raises(ModelError, match=r"did not answer within 0.05 s to a batch of shape \(256, 4\)"):
        probed(net)
    release.set()
    assert net.training


def test_a_model_that_minds_the_thread_is_not_blamed() -> None:
    """A caller's context, say a default device, is not there in another thread."""

    def picky(z: torch.Tensor) -> torch.Tensor:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("not here")
        return z

    assert probed(Wrapped(picky)).classes == 2


def test_what_a_model_raises_after_the_probe_is_its_own_fault() -> None:
    def too_many(z: torch.Tensor) -> torch.Tensor:
        if len(z) > 256:
            raise ValueError("too many rows")
        return z

    def too_large(z: torch.Tensor) -> torch.Tensor:
        if len(z) > 256:
            raise torch.OutOfMemoryError("3 TiB")
        return z

    for then, error, message in (
        (too_many, ModelError, r"raised ValueError on a batch of shape \(300, 4\).*too many rows"),
        (too_large, ResourceError, r"out of memory on a batch of shape \(300, 4\).*batch_size than 8192"),
    ):
        classifier = TorchClassifier(Wrapped(then), output="logits")
        problem = Problem(classifier=classifier, cohort=X, target=1, margin=0.1, budgets={"x0": 1.0})
        with pytest.raises(error, match=message):
            solve(problem)


@pytest.mark.parametrize("kind", ["network", "linear", "scikit-learn"])
def test_a_caller_in_inference_mode_gets_the_same_plan(kind: str) -> None:
    model = LogisticRegression().fit(X[:, :2], X[:, 0] > 0)
    net = {"network": small_net(2), "linear": linear_net([1.0, 0.5]), "scikit-learn": None}[kind]

    def plan() -> Any:
        classifier = SklearnClassifier(model) if net is None else TorchClassifier(net, output="logits")
        budgets = {"x0": 9.0, "x1": 9.0}
        return solve(Problem(classifier=classifier, cohort=X[:40, :2], target=1, margin=0.1, budgets=budgets))

    outside = plan()
    with torch.inference_mode():
        inside = plan()
    assert outside.count > 0
    np.testing.assert_array_equal(outside.changes, inside.changes)


def test_no_saturated_softmax_is_refused() -> None:
    """The last two: probabilities still move by 1e-18, but the gradient is rounded to zero."""
    rng = np.random.default_rng(0)
    cases = [(10 ** rng.uniform(0, 3), float(rng.normal() * 3)) for _ in range(300)]
    for w, x in [*cases, (32.75, 2.27), (32.75, 1.27)]:
        for dtype in (torch.float32, torch.float64):
            module = nn.Sequential(linear_net([w], dtype=dtype), nn.Softmax(1))
            classifier = TorchClassifier(module, output="probabilities")
            assert probe(classifier, Sample.of_table(np.array([[x]])), str).classes == 2


def test_a_saturated_softmax_is_no_fault() -> None:
    """In float32 both the output and its gradient are flat: nothing is wrong with such a model."""
    assert (
        probed(nn.Sequential(linear_net([1e5, 0, 0, 0], dtype=torch.float32), nn.Softmax(1)), "probabilities").classes
        == 2
    )


def test_large_logits_that_round_differently_in_other_batches_are_no_coupling() -> None:
    """Two logits near 1e4, apart by little: their rounding shows in the probabilities, and the guard covers it."""

    def large(z: torch.Tensor) -> torch.Tensor:
        both = z + 1e4
        return torch.cat([both[:, :1], both[:, 1:] * (1 + 2e-7 * (len(z) == 1))], dim=1)

    result = probed(Wrapped(large))
    assert 1e-3 < result.rounding[0].guard(0.0) < 1e-2
    assert "rounds differently" in guard_of(result.rounding, 0.0)[1][0]


def test_probabilities_called_logits_are_noticed() -> None:
    (notice,) = probed(Wrapped(lambda z: torch.softmax(z, 1))).notices
    assert "output='probabilities'" in notice


def test_dropout_and_batch_norm_are_used_in_eval_mode() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    assert probed(net).classes == 2
    assert net.training


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"output": "logit"}, "'logits', 'probabilities' or 'decision'"),
        ({"output": "logits", "classes": ["a", "a"]}, "different names"),
        ({"output": "logits", "batch_size": 0}, "batch_size"),
        ({"output": "logits", "dtype": torch.int64}, "floating point"),
    ],
)
def test_wrong_options(options: Any, part: str) -> None:
    with pytest.raises(InputError, match=part):
        TorchClassifier(small_net(4), **options)
    with pytest.raises(TypeError):
        TorchClassifier(small_net(4))  # type: ignore[call-arg]


# --- left as found ---


def test_the_model_is_left_as_found_even_after_a_failure() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    net[1].eval()
    net[0].weight.requires_grad_(False)
    calls: list[int] = []
    handle = net.register_forward_hook(lambda *_: calls.append(1))
    state = copy.deepcopy(net.state_dict())
    modes = [m.training for m in net.modules()]
    classifier = TorchClassifier(net, output="logits")

    def use_and_fail() -> None:
        with classifier.borrowed():
            assert not any(m.training for m in net.modules())
            classifier.probabilities(torch.tensor(X))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use_and_fail()
    assert [m.training for m in net.modules()] == modes
    assert not net[0].weight.requires_grad
    assert net[3].weight.requires_grad
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(state.values(), net.state_dict().values(), strict=True))
    assert list(net._forward_hooks) == [handle.id]


# --- linear models ---


class Scaled(nn.Module):
    mean: torch.Tensor

    def __init__(self, head: Callable[[torch.Tensor], torch.Tensor] = lambda z: z) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([1.0, -2.0, 0.5, 0.0]))
        self.spread = nn.Parameter(torch.tensor([2.0, 0.5, 1.0, 3.0]))
        self.linear, self.head = nn.Linear(4, 3), head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.linear((x - self.mean) / self.spread)
        return self.head(z)


@torch.library.custom_op("maxflip_test::add", mutates_args=())
def _squares(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """An operator whose name promises something else."""
    return a * b


LINEAR: list[tuple[str, Any, str]] = [
    ("linear", nn.Linear(4, 3), "logits"),
    ("two layers", nn.Sequential(nn.Linear(4, 6), nn.Dropout(), nn.Identity(), nn.Linear(6, 2)), "logits"),
    ("batch norm", nn.Sequential(nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(4, 2, bias=False)), "logits"),
    ("scaler inside", Scaled(), "logits"),
    ("softmax", nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1)), "probabilities"),
    ("log softmax", nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=-1)), "logits"),
    ("temperature", Scaled(lambda z: 2.0 - z / 1.5 + z @ torch.ones(3, 3)), "logits"),
    ("double inside", Scaled(lambda z: z.double()), "logits"),
    ("tanh", small_net(4), "no"),
    ("square", Scaled(lambda z: z * z), "no"),
    ("relu", nn.Sequential(nn.Linear(4, 2), nn.ReLU()), "no"),
    ("row sums", Scaled(lambda z: z - z.mean(0)), "no"),
    ("cast to whole numbers", Scaled(lambda z: z.to(torch.int64).to(torch.float32)), "no"),
    ("in place, unseen", Scaled(lambda z: (torch.Tensor.mul_(z, 2.0), z)[1]), "no"),
    ("absolute value", Scaled(torch.abs), "no"),
    ("clamped", Scaled(lambda z: z.clamp(-1, 1)), "no"),
    ("one column", Scaled(lambda z: z[:, :2]), "no"),
    ("where", Scaled(lambda z: torch.where(z > 0, z, 0.1 * z)), "no"),
    ("weights from the input", Scaled(lambda z: torch.nn.functional.linear(z, z[:3])), "no"),
    ("custom operator named add", Scaled(lambda z: torch.ops.maxflip_test.add(z, z)), "no"),
    ("log softmax inside", nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(1), nn.Linear(3, 2)), "no"),
    ("softmax called logits", nn.Sequential(nn.Linear(4, 2), nn.Softmax(1)), "no"),
]


@pytest.mark.parametrize(("module", "output"), [c[1:] for c in LINEAR], ids=[c[0] for c in LINEAR])
def test_linear_models_are_recognised_from_their_structure(module: Any, output: str) -> None:
    classifier = TorchClassifier(module, output="logits" if output == "no" else output)  # type: ignore[arg-type]
    form = classifier.linear(4)
    assert (form is not None) == (output != "no")
    if form is not None:
        with classifier.borrowed(), torch.no_grad():
            logits = torch.tensor(X) @ form.weight.T + form.bias
            torch.testing.assert_close(
                torch.softmax(logits, 1), classifier.probabilities(torch.tensor(X)), atol=1e-6, rtol=0
            )


@pytest.mark.parametrize("dynamic", [torch.export.Dim("rows"), torch.export.Dim.DYNAMIC])
def test_exported_linear_models_are_recognised(dynamic: Any) -> None:
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 6), nn.Dropout(), nn.Linear(6, 3)).eval()
    exported = torch.export.export(net, (torch.zeros(2, 4),), dynamic_shapes=({0: dynamic},)).module()
    form = TorchClassifier(exported, output="logits").linear(4)
    assert form is not None
    torch.testing.assert_close(
        torch.tensor(X) @ form.weight.T + form.bias, net(torch.tensor(X).float()).double(), atol=1e-5, rtol=0
    )
    bent = torch.export.export(small_net(4), (torch.zeros(2, 4),), dynamic_shapes=({0: dynamic},)).module()
    assert TorchClassifier(bent, output="logits").linear(4) is None


def test_a_zero_and_a_logit_make_a_linear_model() -> None:
    class OneLogit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = self.linear(x)
            return torch.cat([torch.zeros_like(z), z], dim=1)

    assert TorchClassifier(OneLogit(), output="logits").linear(4) is not None


def test_sums_of_large_inputs_that_cancel_are_no_coupling_of_rows() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        net = nn.Linear(4, 4, dtype=torch.float64)
        with torch.no_grad():
            net.weight.copy_(torch.tensor(rng.normal(size=(4, 4))))
        x = 1e4 + rng.normal(size=(64, 4))
        net.bias.data -= net(torch.tensor(x)).mean(dim=0)
        probed = probe(TorchClassifier(net, output="logits"), Sample.of_table(x), str)
        assert probed.classes == 4
        assert probed.rounding[0].guard(0.0) <= 1e-6
