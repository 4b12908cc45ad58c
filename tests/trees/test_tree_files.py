"""Files of trees that are cut, hostile, of another version or of another kind: one clear line each."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxflip import InputError, MaxflipError, ModelError, TreeClassifier
from maxflip_wall import Unreadable
from maxflip_wall.ubjson import parse_ubjson
from tests.trees.trained import trained

Tables = dict[str, Any]


def text_of_lightgbm() -> str:
    text: str = trained("lightgbm", 2).booster_.model_to_string()
    return text


def table_of(kind: str, folder: Path) -> Tables:
    path = folder / "from_the_library.json"
    model = trained(kind, 2)
    model.save_model(path) if kind == "xgboost" else model.save_model(str(path), format="json")
    table: Tables = json.loads(path.read_text())
    return table


def refusal(path: Path, content: str | bytes | Tables) -> str:
    """What is said of a file with this content: one line that names the file."""
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(MaxflipError) as caught:
        TreeClassifier(path)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def swapped(old: str, new: str) -> Callable[[str], str]:
    def swap(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return swap


@pytest.mark.parametrize(("change", "says"), [
    (lambda text: text[: len(text) // 3], "truncated: 'end of trees' is missing"),
    (swapped("version=v4", "version=v9"), "format 'v9' is not known"),
    (swapped("leaf_value=", "leaf_value=nan "), "tree 0: leaf_value: wanted 8 numbers"),
    (swapped("left_child=", "left_child=99 "), "tree 0: left_child: wanted 7 numbers"),
    (swapped("Tree=1", "Tree=1\nTree=7"), "num_leaves is missing"),
    (swapped("is_linear=0", "is_linear=1"), "linear models in its leaves"),
    (swapped("objective=binary", "objective=mine"), "objective 'mine"),
    (swapped("tree_sizes=", "tree_sizes=7 "), "holds 6 trees, and its head speaks of another number"),
    (swapped("num_leaves=8", "num_leaves=100000000"), "wanted 100000000 numbers"),
])  # fmt: skip
def test_bad_texts_of_lightgbm(change: Callable[[str], str], says: str, tmp_path: Path) -> None:
    assert says in refusal(tmp_path / "model.txt", change(text_of_lightgbm()))


def test_a_leaf_that_is_nan_and_a_circle(tmp_path: Path) -> None:
    lines = text_of_lightgbm().split("\n")

    def with_first(key: str, number: str) -> str:
        line = next(i for i, text in enumerate(lines) if text.startswith(key))
        return "\n".join([*lines[:line], f"{key}{number} " + lines[line].partition(" ")[2], *lines[line + 1 :]])

    path = tmp_path / "model.txt"
    assert "tree 0: the leaf at node 7 holds [nan], no finite number" in refusal(path, with_first("leaf_value=", "nan"))
    assert "tree 0 is no tree" in refusal(path, with_first("left_child=", "0"))
    assert "tree 0 is no tree" in refusal(path, with_first("right_child=", "4000"))
    assert "tests a column that is not among the model's 5" in refusal(path, with_first("split_feature=", "77"))
    assert "the threshold of node 0 is NaN" in refusal(path, with_first("threshold=", "nan"))


def in_tree(key: str, value: Any) -> Callable[[Tables], None]:
    def change(table: Tables) -> None:
        tree = table["learner"]["gradient_booster"]["model"]["trees"][0]
        if callable(value):
            value(tree[key])
        else:
            tree[key] = value

    return change


def in_learner(*keys: str, value: Any) -> Callable[[Tables], None]:
    def change(table: Tables) -> None:
        for key in ("learner", *keys[:-1]):
            table = table[key]
        table[keys[-1]] = value

    return change


@pytest.mark.parametrize(("change", "says"), [
    (lambda table: table.update(version=[9, 0, 0]), "format [9, 0, 0] is not known"),
    (lambda table: table.pop("version"), "version is missing"),
    (in_learner("objective", "name", value="reg:squarederror"), "objective 'reg:squarederror' is none of a classifier"),
    (in_learner("gradient_booster", "name", value="gblinear"), "booster is 'gblinear'"),
    (in_learner("learner_model_param", "base_score", value="nan"), "base_score = nan is no probability"),
    (in_learner("learner_model_param", "num_feature", value="2"), "column that is not among the model's 2"),
    (in_tree("split_conditions", lambda numbers: numbers.__setitem__(-1, float("nan"))), "tree 0: the leaf at node"),
    (in_tree("left_children", lambda numbers: numbers.__setitem__(1, 0)), "tree 0 is no tree"),
    (in_tree("right_children", lambda numbers: numbers.pop()), "tree 0: right_children: wanted"),
    (in_tree("split_indices", "ten"), "tree 0: split_indices: wanted a list of numbers, got 'ten'"),
    (in_tree("tree_param", []), "tree 0: tree_param: wanted a table"),
    (in_learner("gradient_booster", "model", "tree_info", value=[]), "tree_info speaks of 0 trees, there are 6"),
    (in_learner("gradient_booster", "model", "tree_info", value=[3] * 6), "tree 0 adds to the class 3"),
    (in_learner("objective", value={"name": "multi:softprob"}), "it has 0 classes"),
    (in_learner("feature_names", value=["age"]), "names 1 columns and has 5"),
])  # fmt: skip
def test_bad_tables_of_xgboost(change: Callable[[Tables], Any], says: str, tmp_path: Path) -> None:
    table = table_of("xgboost", tmp_path)
    change(table)
    assert says in refusal(tmp_path / "model.json", table)


def test_damaged_categories_of_xgboost(tmp_path: Path) -> None:
    table = table_of("xgboost", tmp_path)
    tree = next(t for t in table["learner"]["gradient_booster"]["model"]["trees"] if t["categories_nodes"])
    tree["categories_sizes"][0] = 10_000
    assert "the categories of node" in refusal(tmp_path / "model.json", table)


def first_tree(table: Tables) -> Tables:
    tree: Tables = table["oblivious_trees"][0]
    return tree


@pytest.mark.parametrize(("change", "says"), [
    (lambda table: first_tree(table)["leaf_values"].__setitem__(0, float("nan")), "tree 0: the leaf at node"),
    (lambda table: first_tree(table)["leaf_values"].pop(), "tree 0: leaf_values: wanted"),
    (lambda table: first_tree(table).update(splits=first_tree(table)["splits"] * 30), "levels; at most 16 are read"),
    (lambda table: first_tree(table)["splits"][0].update(split_type="OnlineCtr"), "tree 0: a split is"),
    (lambda table: first_tree(table)["splits"][0].update(float_feature_index=9), "names the column 9; the model has 5"),
    (lambda table: first_tree(table)["splits"][0].update(border=None), "has the border None"),
    (lambda table: table.update(scale_and_bias=[1]), "scale_and_bias: wanted [scale, [bias, ...]], got [1]"),
    (lambda table: table["model_info"]["params"]["loss_function"].update(type="RMSE"), "loss 'RMSE'"),
    (lambda table: table["features_info"]["float_features"].pop(1), "column 1 is missing or damaged"),
])  # fmt: skip
def test_bad_tables_of_catboost(change: Callable[[Tables], Any], says: str, tmp_path: Path) -> None:
    table = table_of("catboost", tmp_path)
    change(table)
    assert says in refusal(tmp_path / "model.json", table)


@pytest.mark.parametrize(("content", "says"), [
    (b"", "no file of trees"),
    (b"CBM1\x00\x00", "is a .cbm of CatBoost, which is not read; save it as .json"),
    (b"binf\x00\x00", "old binary format"),
    (b"{}", "no file of trees"),
    (b'{"learners": 2}', "no model of XGBoost ('learner') or CatBoost ('oblivious_trees')"),
    (b'{"learner": 1, "learner": 2}', "a key occurs twice"),
    (b'{"learner": 1, "version": [3]}', "learner: wanted a table, got 1"),
    (b'{"learner": ', "Expecting value"),
    (b'{"learner":' + b"[" * 100_000, "recursion"),
    (b"\x80\x04cos\nsystem\n", "no file of trees"),
    (b"tree\n\xff\xfe", "utf-8"),
])  # fmt: skip
def test_files_that_are_no_trees(content: bytes, says: str, tmp_path: Path) -> None:
    assert says in refusal(tmp_path / "model", content)


def test_each_cut_of_a_ubj_is_refused(tmp_path: Path) -> None:
    trained("xgboost", 2).save_model(tmp_path / "whole.ubj")
    whole = (tmp_path / "whole.ubj").read_bytes()
    for end in [*range(1, 200, 7), *range(200, len(whole), len(whole) // 40)]:
        refusal(tmp_path / "model.ubj", whole[:end])
    assert "follow its end" in refusal(tmp_path / "model.ubj", whole + b"Z")


def test_damaged_bytes_of_a_ubj_never_end_in_anything_else(tmp_path: Path) -> None:
    trained("xgboost", 2).save_model(tmp_path / "whole.ubj")
    whole = (tmp_path / "whole.ubj").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 4):
            damaged[place] = rng.integers(256)
        path = tmp_path / "model.ubj"
        path.write_bytes(damaged)
        try:
            TreeClassifier(path)
        except (InputError, ModelError):
            refused += 1
    assert refused > 0


def size(number: int) -> bytes:
    return b"L" + struct.pack(">q", number)


@pytest.mark.parametrize(("data", "says"), [
    (b"[$d#" + size(1 << 60), "elements cannot follow"),
    (b"[$d#" + size(-1), "elements cannot follow"),
    (b"[$Z#" + size(4), "must hold numbers"),
    (b"[#" + size(1 << 40), "elements cannot follow"),
    (b"{#" + size(1 << 40), "elements cannot follow"),
    (b"S" + size(1 << 40), "elements cannot follow"),
    (b"[$D#" + size(3) + bytes(8), "24 bytes wanted"),
    (b"[" * 1000, "more than 64 containers"),
    (b"{i\x01aZi\x01aZ}", "a key occurs twice"),
    (b"[$d" + size(1), "must hold numbers, and say how many"),
    (b"?", "unknown mark"),
    (b"Sd\x00\x00\x00\x00", "a size was wanted"),
])  # fmt: skip
def test_sizes_in_ubjson_are_checked_first(data: bytes, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        parse_ubjson(data)


def test_ubjson_by_hand() -> None:
    data = b"{i\x01a[U\xffI\xff\xfel" + struct.pack(">i", -7) + size(1 << 40)
    data += b"d" + struct.pack(">f", 0.5) + b"D" + struct.pack(">d", 0.1) + b"TFZCxSi\x02hi]"
    data += b"i\x01b[$I#i\x02\x00\x01\xff\xffi\x01c{#i\x01i\x01dT}"
    table = parse_ubjson(data)
    assert table["a"] == [255, -2, -7, 1 << 40, 0.5, 0.1, True, False, None, "x", "hi"]
    assert table["b"].tolist() == [1, -1]
    assert table["c"] == {"d": True}
