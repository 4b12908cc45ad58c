"""Checks from the graph of a .pt2, before torch loads it, that the model is a classifier of rows."""

import json
from collections.abc import Iterator
from typing import Any

from maxflip_wall.allowlist import ALLOWED
from maxflip_wall.files import Broken

RANDOM = frozenset(ALLOWED["graph"]["operators"]["random"].split())
LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
ONE_TENSOR: dict[str, Any] = {  # by position, and no keywords
    "type": "builtins.tuple",
    "context": "null",
    "children_spec": [
        {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF]},
        {"type": "builtins.dict", "context": "[]", "children_spec": []},
    ],
}
WRAP = "Wrap the model in a module that takes and returns just that tensor"


def check_contract(program: dict[str, Any]) -> None:
    """Raise Broken unless the model takes one tensor, returns one tensor, and is deterministic."""
    graph, signature = program["graph_module"]["graph"], program["graph_module"]["signature"]
    for spec in _each(program, "in_spec"):
        if json.loads(spec)[1] != ONE_TENSOR:
            shapes = " and ".join(_shapes(graph, signature["input_specs"], "user_input")) or "nothing"
            raise Broken(f"the model takes {shapes}; wanted one tensor by position, (rows, features). {WRAP}")
    for spec in _each(program, "out_spec"):
        if (tree := json.loads(spec)[1]) != LEAF:
            kind = (tree["type"] or "tree").rpartition(".")[2].replace("OrderedDict", "dict")
            shapes = ", ".join(_shapes(graph, signature["output_specs"], "user_output"))
            wanted = "wanted one tensor (rows, classes): one row per sample, one column per class"
            raise Broken(f"the model returned a {kind} of {shapes or 'nothing'}; {wanted}. {WRAP}")
    for target in _each(program, "target"):
        name = target.removeprefix("torch.ops.aten.").partition(".")[0]
        if name.removesuffix("_") in RANDOM:
            raise Broken(
                f"the model's output changes between calls: it draws random numbers ({name}). Switch that off in eval "
                "mode and export the model again"
            )


def _shapes(graph: dict[str, Any], specs: list[dict[str, Any]], kind: str) -> Iterator[str]:
    """The shape of each input or output tensor, as "(rows, 3)"."""
    for argument in (spec[kind]["arg"] for spec in specs if kind in spec):
        if "as_tensor" in argument:
            sizes = graph["tensor_values"][argument["as_tensor"]["name"]]["sizes"]
            yield f"({', '.join(str(size.get('as_int', 'rows')) for size in sizes)})"
        else:
            yield "something that is no tensor"


def _each(value: Any, key: str, under: str = "") -> Iterator[str]:
    """Every text under `key` at any depth, because graphs can contain graphs."""
    if isinstance(value, str) and under == key:
        yield value
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from _each(child, key, name)
    elif isinstance(value, list):
        for child in value:
            yield from _each(child, key, under)
