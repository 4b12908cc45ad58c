"""Models from .skops files: convertible ones are loaded, and nothing else is even imported."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import maxflip_wall.skops as module
from maxflip import InputError, MaxflipError, Problem, UnsafeError, solve
from maxflip.models import SklearnClassifier
from maxflip.models.files import load_classifier
from maxflip_wall.skops import TYPES, is_skops
from tests.test_sklearn import (
    CASES,
    NAMES,
    Case,
    fit,
    fitted,
    labels,
    logistic,
    network,
    probabilities,
    rows,
    scaled,
    table,
)

skops_io = pytest.importorskip("skops.io", reason="needs the extra `sklearn`")

SEARCHES = ("grid", "random", "halving")
LOADABLE = [case for case in CASES if case.name not in SEARCHES]


def load_skops(path: Path, **given: Any) -> SklearnClassifier:
    classifier = load_classifier(path, **given)
    assert isinstance(classifier, SklearnClassifier)
    return classifier


def saved(model: Any, folder: Path) -> Path:
    path = folder / "model.skops"
    skops_io.dump(model, path)
    return path


@pytest.mark.parametrize("case", LOADABLE, ids=lambda c: c.name)
def test_convertible_models_come_back_as_they_were(case: Case, tmp_path: Path) -> None:
    model, x = fitted(case.name, 2), rows(200, seed=3)
    classifier = load_skops(saved(model, tmp_path))
    np.testing.assert_allclose(probabilities(classifier, x), model.predict_proba(table(x, case.frame)), atol=1e-9)
    assert classifier.feature_names == (tuple(NAMES) if case.frame else None)


@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_a_networks_optimizer_is_no_obstacle(solver: str, tmp_path: Path) -> None:
    x = rows(200, 0)
    model = fit(scaled(network().set_params(solver=solver, early_stopping=True, max_iter=5)), x, labels(x, 2))
    assert any("Optimizer" in t for t in skops_io.get_untrusted_types(data=skops_io.dumps(model)))
    classifier = load_skops(saved(model, tmp_path))
    np.testing.assert_allclose(probabilities(classifier, x), model.predict_proba(x), atol=1e-9)


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    skops_io.dump(fitted("logistic", 3), path, compression=zipfile.ZIP_DEFLATED)
    assert load_skops(path).classes == ("high", "low", "mid")


def test_classes_may_be_called_otherwise_but_not_be_swapped(tmp_path: Path) -> None:
    path = saved(fitted("logistic", 2), tmp_path)
    assert load_skops(path).classes == ("low", "mid")
    assert load_skops(path, classes=["low", "mid"]).classes == ("low", "mid")
    assert load_skops(path, classes=["few", "mid"]).classes == ("few", "mid")
    for wrong in (["mid", "low"], ["mid", "x"], ["low"], ["low", "mid", "high"]):
        with pytest.raises(InputError, match=r"the classes of model\.skops are 'low', 'mid'"):
            load_skops(path, classes=wrong)


def test_a_model_that_gives_probabilities_gives_no_logits(tmp_path: Path) -> None:
    path = saved(fitted("logistic", 2), tmp_path)
    assert load_skops(path, output="probabilities").classes == ("low", "mid")
    with pytest.raises(InputError, match=r"model\.output = 'logits': model\.skops is a scikit-learn model"):
        load_skops(path, output="logits")


def test_a_loaded_model_is_solved(tmp_path: Path) -> None:
    classifier = load_skops(saved(fitted("one-hot, drop first", 2), tmp_path))
    problem = Problem(classifier=classifier, cohort=rows(50, 4), target="low", margin=0.1, budgets={"x0": 900.0})
    assert solve(problem).count > 0


# --- what is refused ---


def crafted(folder: Path, change: Callable[[dict[str, Any]], None], extra: dict[str, bytes] | None = None) -> Path:
    """A good file whose tree was changed by hand."""
    original = zipfile.ZipFile(io.BytesIO(skops_io.dumps(fitted("logistic", 2))))
    records = {name: original.read(name) for name in original.namelist()}
    tree = json.loads(records["schema.json"])
    change(tree)
    records |= {"schema.json": json.dumps(tree).encode()} | (extra or {})
    path = folder / "crafted.skops"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return path


def node(loader: str, path: str, **more: Any) -> dict[str, Any]:
    where, _, name = path.rpartition(".")
    return {"__class__": name, "__module__": where, "__loader__": loader, **more}


def text(value: Any) -> dict[str, Any]:
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def listed_node(kind: str, *items: Any) -> dict[str, Any]:
    return node(f"{kind.capitalize()}Node", f"builtins.{kind}", content=list(items))


def attacks(canary: Path) -> dict[str, tuple[dict[str, Any], str]]:
    """Trees that would write the canary, or import the module that does, if they were built."""
    command = listed_node("tuple", text(f"touch {canary}"))
    system = node("FunctionNode", "posix.system")
    state = {"content": listed_node("dict"), "__reduce__": {"args": command}}
    empty = node("DictNode", "builtins.dict", content={}, key_types=listed_node("list"))
    model = node("ObjectNode", "sklearn.linear_model._logistic.LogisticRegression", content=empty)
    partial = {"func": system, "args": command, "kwds": empty, "namespace": empty}
    return {
        "import": (node("ObjectNode", "canary_module.Thing", content=empty), "canary_module.Thing"),
        "type": (node("TypeNode", "canary_module.Thing"), "canary_module.Thing"),
        "dict of a class": (
            node("DictNode", "canary_module.Thing", content={}, key_types=listed_node("list")),
            "canary",
        ),
        "list of a class": (node("ListNode", "canary_module.Thing", content=[]), "canary_module"),
        "array of a class": (node("NdArrayNode", "canary_module.Thing", type="numpy", file="1.npy"), "canary_module"),
        "function": (system, "posix.system"),
        "constructor": (node("ConstructorFromReduceNode", "posix.system", content=command), "posix.system"),
        "of a listed class": (
            node("ConstructorFromReduceNode", "sklearn.pipeline.Pipeline", content=command),
            "Pipeline",
        ),
        "partial": (node("PartialNode", "functools.partial", content=partial), "functools.partial"),
        "operator": (node("OperatorFuncNode", "operator.methodcaller", attrs=command), "operator.methodcaller"),
        "call": (node("OperatorFuncNode", "operator.call", attrs=command), "operator.call"),
        "method": (
            node(
                "MethodNode", "sklearn.linear_model._logistic.LogisticRegression", content={"func": "fit", "obj": model}
            ),
            "LogisticRegression (MethodNode)",
        ),
        "reduce": (node("LossNode", "canary_module.Thing", **state), "canary_module.Thing"),
        "tree": (node("TreeNode", "sklearn.tree._tree.Tree", **state), "sklearn.tree._tree.Tree"),
        "default": (
            node("DefaultDictNode", "collections.defaultdict", content={"main": empty, "default_factory": system}),
            "collections.defaultdict",
        ),
        "generator": (
            node("RandomGeneratorNode", "numpy.random._generator.Generator", content={"bit_generator": empty}),
            "numpy.random._generator.Generator",
        ),
        "a trusted estimator that is not ours": (
            node("ObjectNode", "sklearn.ensemble._forest.RandomForestClassifier", content=empty),
            "RandomForestClassifier",
        ),
        "cached": ({"__class__": None, "__module__": None, "__loader__": "CachedNode", "__id__": 1}, "CachedNode"),
        "no loader of that name": (node("ExecNode", "builtins.exec", content="1"), "builtins.exec (ExecNode)"),
        "a loader that is no text": (
            {"__loader__": {"a": 1}, "__class__": "str", "__module__": "builtins"},
            "builtins.str",
        ),
    }


def as_the_model(tree: dict[str, Any], evil: dict[str, Any]) -> None:
    tree.clear()
    tree.update(evil, protocol=2, _skops_version="0.16")


def as_an_attribute(tree: dict[str, Any], evil: dict[str, Any]) -> None:
    tree["content"]["content"]["memory"] = evil


def as_a_step(tree: dict[str, Any], evil: dict[str, Any]) -> None:
    tree["content"]["content"]["steps"]["content"].append(evil)


def under_a_key_that_nobody_reads(tree: dict[str, Any], evil: dict[str, Any]) -> None:
    tree["comment"] = {"deep": [[evil]]}


def with_the_id_of_another(tree: dict[str, Any], evil: dict[str, Any]) -> None:
    as_an_attribute(tree, evil | {"__id__": tree["content"]["content"]["steps"]["__id__"]})


def in_the_oldest_protocol(tree: dict[str, Any], evil: dict[str, Any]) -> None:
    as_an_attribute(tree, evil)
    tree["protocol"] = 0


PLACES = [
    as_the_model,
    as_an_attribute,
    as_a_step,
    under_a_key_that_nobody_reads,
    with_the_id_of_another,
    in_the_oldest_protocol,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("attack", attacks(Path("canary")))
def test_nothing_of_a_crafted_file_runs(
    attack: str, place: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "canary_module.py").write_text(f"open({str(canary)!r}, 'w').close()\nclass Thing: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    evil, named = attacks(canary)[attack]
    path = crafted(tmp_path, lambda tree: place(tree, copy.deepcopy(evil)))
    with pytest.raises(UnsafeError) as caught:
        load_skops(path)
    assert named in str(caught.value)
    assert caught.value.exit_code == 7
    assert not canary.exists()
    assert "canary_module" not in sys.modules


def test_the_canary_sings_without_the_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above shows is worth something only if such a file does run."""
    canary = tmp_path / "canary"
    (tmp_path / "singing_module.py").write_text(f"open({str(canary)!r}, 'w').close()\nclass Thing: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    evil = node("TypeNode", "singing_module.Thing")
    path = crafted(tmp_path, lambda tree: tree["content"]["content"].__setitem__("memory", evil))
    skops_io.load(path, trusted=["singing_module.Thing"])
    assert canary.exists()


class Evil:
    def __reduce__(self) -> Any:
        return (sys.modules["os"].system, ("touch canary",))


def test_pickles_in_disguise_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.skops").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(UnsafeError, match=r"looks like a pickle.*skops\.io\.dump"):
        load_skops(tmp_path / "a.skops")
    sink = io.BytesIO()
    np.save(sink, np.array([Evil()], dtype=object), allow_pickle=True)

    def coefficients(tree: dict[str, Any]) -> dict[str, Any]:
        last = tree["content"]["content"]["steps"]["content"][-1]["content"][1]
        return last["content"]["content"]["coef_"]  # type: ignore[no-any-return]

    with pytest.raises(UnsafeError, match=r"evil\.npy holds pickled objects"):
        load_skops(
            crafted(tmp_path, lambda tree: coefficients(tree).update(file="evil.npy"), {"evil.npy": sink.getvalue()})
        )
    for name, content in {
        "evil.npy": pickle.dumps(Evil()),
        "../evil.npy": sink.getvalue(),
        "evil.pkl": b"\x80",
    }.items():
        with pytest.raises(UnsafeError, match="evil"):
            load_skops(crafted(tmp_path, lambda tree, n=name: coefficients(tree).update(file=n), {name: content}))  # type: ignore[misc]
    assert not (tmp_path / "canary").exists()


def test_models_that_are_no_good_are_told_what_to_do(tmp_path: Path) -> None:
    x = rows(100, 0)
    y = labels(x, 2)
    with pytest.raises(UnsafeError, match=r"GridSearchCV.*save its best_estimator_"):
        load_skops(saved(fit(GridSearchCV(scaled(logistic()), {}, cv=2), x, y), tmp_path))
    with pytest.raises(UnsafeError, match=r"numpy\.log1p"):
        load_skops(saved(fit(make_pipeline(FunctionTransformer(np.log1p), logistic()), x, y), tmp_path))
    with pytest.raises(InputError, match="not fitted"):
        load_skops(saved(LogisticRegression(), tmp_path))


def test_damaged_files_are_input_errors(tmp_path: Path) -> None:
    data = skops_io.dumps(fitted("logistic", 2))
    path = tmp_path / "model.skops"
    with pytest.raises(InputError, match="No such file"):
        load_skops(path)
    for broken in (
        lambda tree: tree.pop("content"),
        lambda tree: tree["content"]["content"].pop("steps"),
        lambda tree: tree.update(protocol=99),
        lambda tree: tree["content"]["content"]["steps"].update(content=3),
    ):
        with pytest.raises(InputError):
            load_skops(crafted(tmp_path, broken))
    path.write_bytes(data[:-100])
    with pytest.raises((InputError, UnsafeError)):
        load_skops(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "[" * 100_000)
    with pytest.raises(InputError, match="RecursionError"):
        load_skops(path)
    twice = io.BytesIO(data)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("schema.json", "{}")
    path.write_bytes(twice.getvalue())
    with pytest.raises(UnsafeError, match="two records with one name"):
        load_skops(path)


def test_any_damage_is_told_and_not_raised_as_it_comes(tmp_path: Path) -> None:
    """One node of the tree at a time replaced by another that is on the list."""
    rng = np.random.default_rng(0)
    told, loaded = [], 0
    for name in ("one-hot, drop first", "calibrated", "network, tanh"):
        original = zipfile.ZipFile(io.BytesIO(skops_io.dumps(fitted(name, 2))))
        records = {name: original.read(name) for name in original.namelist()}
        for _ in range(60):
            tree = json.loads(records["schema.json"])
            nodes = list(module._nodes(tree))[1:]
            victim, other = (nodes[i] for i in rng.choice(len(nodes), 2, replace=False))
            changed = copy.deepcopy(other)
            victim.clear()
            victim.update(changed)
            path = tmp_path / "model.skops"
            with zipfile.ZipFile(path, "w") as archive:
                for record, content in (records | {"schema.json": json.dumps(tree).encode()}).items():
                    archive.writestr(record, content)
            with warnings.catch_warnings(action="ignore"):
                try:
                    loaded += bool(load_skops(path).classes)
                except MaxflipError as error:
                    told.append(str(error))
    assert len(told) + loaded == 180
    assert len(told) > 60
    assert all("model.skops" in message for message in told)


def test_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 1000)
    with pytest.raises(InputError, match="unpacks to more than 1000 bytes"):
        load_skops(saved(fitted("logistic", 2), tmp_path))


def test_without_skops_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(fitted("logistic", 2), tmp_path)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(InputError, match=r"pip install 'maxflip\[sklearn\]'"):
        load_skops(path)


def test_kinds_are_told_by_content() -> None:
    assert is_skops(skops_io.dumps(fitted("logistic", 2)))
    assert not is_skops(b"")
    assert not is_skops(pickle.dumps(1))
    assert not is_skops(b"PK\x03\x04 and nothing more")
    later = bytearray(skops_io.dumps(fitted("logistic", 2)))
    later[later.index(b"PK\x01\x02") + 6] = 99  # the version of zip that is needed
    assert not is_skops(bytes(later))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("model/archive_format", "pt2")
    assert not is_skops(other.getvalue())


def test_neither_the_audit_nor_maxflip_itself_imports_skops_or_scikit_learn(tmp_path: Path) -> None:
    path = crafted(
        tmp_path, lambda tree: tree["content"]["content"].__setitem__("memory", node("FunctionNode", "os.system"))
    )
    code = f"""
import sys
from pathlib import Path
import maxflip.models.sklearn.model
from maxflip import UnsafeError
from maxflip.models.files import load_classifier
try:
    load_classifier(Path({str(path)!r}))
except UnsafeError:
    sys.exit(1 if {{"skops", "sklearn"}} & set(sys.modules) else 0)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_listed_types_take_no_part_in_building_themselves() -> None:
    """Each is made by __new__ and gets its attributes; only scikit-learn's own __setstate__ is ever called."""
    from importlib import import_module

    from sklearn.base import BaseEstimator

    for path in sorted(TYPES["ObjectNode"]):
        where, _, name = path.rpartition(".")
        cls = getattr(import_module(where), name)
        assert cls.__new__ is object.__new__
        assert getattr(cls, "__setstate__", BaseEstimator.__setstate__) is BaseEstimator.__setstate__
        assert not hasattr(cls, "__del__")
