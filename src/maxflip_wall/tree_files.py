"""Recognises and parses the files of tree libraries. They hold numbers and names alone, and nothing here runs them.

LightGBM's text, XGBoost's .json and .ubj, and CatBoost's .json. What the content means is for the readers to say.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from maxflip_wall.files import Unreadable, reading, unique_keys
from maxflip_wall.ubjson import parse_ubjson

LARGEST = 256 << 20  # bytes; parsed, a file takes up to ten times as much memory
SPACES = b" \r\n\t"
TABLES = (b'{"', b"{}", b"{i", b"{U", b"{I", b"{l", b"{L", b"{#")  # JSON has a quote behind the brace, UBJSON a size
WORDS = (b"learner", b"oblivious_trees", b'"trees"')  # keys of XGBoost and CatBoost
LIGHTGBM, CATBOOST_BINARY, XGBOOST_BINARY = b"tree\n", b"CBM1", b"binf"
REMEDY = (
    ". Trees are read from LightGBM's booster.save_model('model.txt'), XGBoost's save_model('model.json') or "
    "('model.ubj') and CatBoost's save_model('model.json', format='json')"
)


@dataclass(frozen=True)
class TreeFile:
    """The content of a file of trees: lines of text (LightGBM) or tables (the others), not yet checked."""

    library: Literal["lightgbm", "xgboost", "catboost"]
    content: Any


def is_tree_file(data: bytes) -> bool:
    """Whether `data` begins as a file of trees does, whatever it is called."""
    start = data[:100].translate(None, SPACES)[:2]
    is_table = start in TABLES and any(word in data for word in WORDS)
    return is_table or data.startswith((LIGHTGBM, CATBOOST_BINARY, XGBOOST_BINARY))


def parse_trees(data: bytes, name: str) -> TreeFile:
    """The content of a file of trees. Raises Unreadable; `name` is used in messages."""
    with reading(name, REMEDY):
        if len(data) > LARGEST:
            raise Unreadable(f"has {len(data)} bytes; a file of trees may have {LARGEST}")
        if data.startswith(CATBOOST_BINARY):
            raise Unreadable("is a .cbm of CatBoost, which is not read; save it as .json")
        if data.startswith(XGBOOST_BINARY):
            raise Unreadable("is in XGBoost's old binary format, which is not read; save it as .json or .ubj")
        if data.startswith(LIGHTGBM):
            return TreeFile("lightgbm", data.decode("utf-8").split("\n"))
        if not is_tree_file(data):
            raise Unreadable("is no file of trees")
        is_json = data[:100].translate(None, SPACES)[:2] in TABLES[:2]
        return _of_table(json.loads(data, object_pairs_hook=unique_keys) if is_json else parse_ubjson(data))


def _of_table(content: Any) -> TreeFile:
    if isinstance(content, dict) and "learner" in content:
        return TreeFile("xgboost", content)
    if isinstance(content, dict) and ("oblivious_trees" in content or "trees" in content):
        return TreeFile("catboost", content)
    raise Unreadable("is a table, but no model of XGBoost ('learner') or CatBoost ('oblivious_trees')")
