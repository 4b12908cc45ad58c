"""The graph of an exported model, copied word by word through the allow-list.

torch.export.load turns strings of `models/model.json` into code: sympy evaluates symbolic sizes, getattr resolves
operators, tree specs name types to import, and names and guards are pasted into Python source that is executed.
So torch sees only what this module has recognised and copied.
"""

import json
import re
import tomllib
from importlib.resources import files
from typing import Any

import torch

from maxflip_verify.files import Refused, Unreadable, parse_json

ALLOWED = tomllib.loads(files("maxflip_verify").joinpath("allowlist.toml").read_text("utf-8"))
GRAPH = ALLOWED["graph"]
HARMLESS = frozenset(GRAPH["operators"]["aten"].split())
DTYPES = {1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64, 12: torch.bool}
DTYPES |= {6: torch.float16, 7: torch.float32, 8: torch.float64, 13: torch.bfloat16}  # torch's own numbers
LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
POSITIONAL = {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF]}
KEYWORDS = {"type": "builtins.dict", "context": "[]", "children_spec": []}
ONE_TENSOR = {"type": "builtins.tuple", "context": "null", "children_spec": [POSITIONAL, KEYWORDS]}


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.replace("\n", ""), text, re.ASCII) is not None


def transcribe(value: Any, device: torch.device, key: str = "") -> Any:
    """A copy of `value` with known keys and strings of a known form only; numbers cannot do harm."""
    if isinstance(value, dict):
        if key == "metadata":  # stack traces and the like, not needed to run
            return {}
        if key in ("device", "as_device"):
            if value.get("type") not in ("cpu", "cuda"):
                raise Refused(f"the model asks for the device {value.get('type')!r:.80}")
            return {"type": device.type, "index": device.index}
        names = GRAPH["names"].get(key)
        for name in value:
            if not (
                matches(names, name) if names else name in GRAPH["strings"] or matches(GRAPH["keys"], name)
            ):
                raise Refused(f"{key or 'the graph'} has {name!r:.80}, which no plain model needs")
        return {name: transcribe(child, device, "" if names else name) for name, child in value.items()}
    if isinstance(value, list):
        return [transcribe(child, device, key) for child in value]
    if isinstance(value, str):
        known = key in GRAPH["strings"] and matches(GRAPH["strings"][key], value)
        if not known or (key == "target" and value.startswith("torch.ops.aten.") and not _harmless(value)):
            raise Refused(f"the graph has {key} = {value!r:.120}, which is not on the list of harmless ones")
    return value


def _harmless(target: str) -> bool:
    packet, overload = target.split(".")[3:]
    operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    return packet.removesuffix("_") in HARMLESS and isinstance(operator, torch._ops.OpOverload)


def rebuild(program: Any, device: torch.device) -> tuple[dict[str, Any], torch.dtype]:
    """A fresh program from the recognised parts of `program`, and the dtype of its one input."""
    module, signature = program["graph_module"], program["graph_module"]["signature"]
    root, *inner = module["module_call_graph"]
    transcribe(program["guards_code"], device, "guard")  # torch executes these; they are not passed on
    if any(call["signature"] for call in inner):
        raise Refused("the graph describes calls of inner modules, for which torch would import types")
    inputs = [spec["user_input"]["arg"] for spec in signature["input_specs"] if "user_input" in spec]
    specs = [parse_json(root["signature"][key].encode(), key) for key in ("in_spec", "out_spec")]
    if specs != [[1, ONE_TENSOR], [1, LEAF]] or [list(arg) for arg in inputs] != [["as_tensor"]]:
        raise Unreadable("the model must be exported with one tensor as its only input and output")
    if [list(spec) for spec in signature["output_specs"]] != [["user_output"]]:
        raise Unreadable("the model changes its own state when called; export it in eval mode")
    dtype = DTYPES.get(module["graph"]["tensor_values"][inputs[0]["as_tensor"]["name"]]["dtype"])
    if dtype is None or not dtype.is_floating_point:
        raise Unreadable(f"the model's input must be of a floating dtype, got {dtype}")
    call = {"inputs": [], "outputs": [], "in_spec": json.dumps(specs[0]), "out_spec": json.dumps(specs[1])}
    copy = {key: transcribe(module[key], device, key) for key in ("graph", "signature")}
    return {
        "graph_module": {**copy, "module_call_graph": [{"fqn": "", "signature": call}]},
        "opset_version": {},
        "verifiers": [name for name in program["verifiers"] if name in ("ATEN", "TRAINING")],
        **{key: transcribe(program[key], device, key) for key in ("range_constraints", "schema_version")},
    }, dtype
