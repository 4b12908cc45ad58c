"""The wall: models that torch.export can save are loaded as they are; files that could run code are not opened.

Every attack here carries a canary, a file that it creates when its code runs. `test_torch_alone_would_run_them` shows
in a subprocess that plain torch.export.load does run them, so that the canaries mean something.
"""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from maxflip_verify.__main__ import main
from maxflip_wall import Broken, LoadedModule, Refused, Unreadable, load_model, read
from tests.verify.good_plan import export, good_plan, linear_model

Records = dict[str, bytes]
MODEL = "models/model.json"
WEIGHTS, CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"


def load_pt2(path: Path) -> LoadedModule:
    loaded = load_model(read(path), str(path))
    assert isinstance(loaded, LoadedModule)
    return loaded


# --- good models


class Recurrent(nn.Module):
    def __init__(self, cell: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell = cell(1, 6, num_layers=2, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(self.cell(x.unsqueeze(-1))[0][:, -1])
        return result


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(1, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(self.encoder(self.into(x.unsqueeze(-1))).mean(1))
        return result


class Scaled(nn.Module):
    """Buffers, constants, a region without gradients, and an operator on sizes."""

    centre: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.ones(4))
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            offset = (x - self.centre) / self.scale
        both = torch.cat([x, torch.clamp(offset, min=-1.0, max=float("inf"))], dim=1)
        spread = both.repeat(2, 1).view(2 * x.shape[0], 8)[: x.shape[0]]
        return torch.softmax(self.out(torch.where(spread > 0, spread, torch.zeros_like(spread))), dim=-1)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(8, 3)),
    "norms": lambda: nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU("tanh"), nn.LayerNorm(8), nn.Linear(8, 3)
    ),
    "double": lambda: nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 3), nn.Softmax(-1)).double(),
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "transformer": Attention,
    "scaled": Scaled,
}


@pytest.mark.parametrize("name", MODULES)
def test_good_models_load_and_give_the_same_outputs(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = MODULES[name]().eval()
    dtype = next(module.parameters()).dtype
    path = tmp_path / "model.pt2"
    path.write_bytes(export(module, torch.randn(5, 4, dtype=dtype)))
    loaded = load_pt2(path)
    assert loaded.dtype == dtype
    for rows in (1, 2, 64):
        x = torch.randn(rows, 4, dtype=dtype)
        torch.testing.assert_close(loaded.module(x), module(x), rtol=0, atol=0)
    x = torch.randn(3, 4, dtype=dtype, requires_grad=True)
    loaded.module(x).sum().backward()
    assert x.grad is not None


def test_an_exported_device_does_not_matter(tmp_path: Path) -> None:
    records = read_records(linear_model())
    for name in (MODEL, WEIGHTS):
        records[name] = records[name].replace(b'{"type": "cpu", "index": null}', b'{"type": "cuda", "index": 3}')
    assert b"cuda" in records[MODEL]
    loaded = load_pt2(write_records(records, tmp_path / "model.pt2"))
    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.equal(loaded.module(x)[:, 1], x[:, 0] + x[:, 1] - x[:, 2] - 1)


# --- attacks


class Gadget:
    """Pickled, it is a call that creates the canary."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.canary), "w")


def read_records(data: bytes) -> Records:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}


def write_records(records: Records, path: Path, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in records.items():
            archive.writestr(f"model/{name}", content)
    return path


def saved(canary: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save(Gadget(canary), buffer)
    return buffer.getvalue()


def edit_json(records: Records, name: str, change: Callable[[Any], object]) -> None:
    value = json.loads(records[name])
    change(value)
    records[name] = json.dumps(value).encode()


def edit_graph(records: Records, change: Callable[[Any], object]) -> None:
    edit_json(records, MODEL, lambda program: change(program["graph_module"]["graph"]))


def pickled_weight(records: Records, canary: Path) -> None:
    records["data/weights/weight_0"] = saved(canary)
    edit_json(records, WEIGHTS, lambda table: table["config"]["layer.weight"].update(use_pickle=True))


def pickled_constant(records: Records, canary: Path) -> None:
    records["data/constants/tensor_0"] = saved(canary)
    entry = {"path_name": "tensor_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    edit_json(records, CONSTANTS, lambda table: table["config"].update(k=entry))


def opaque_constant(records: Records, canary: Path) -> None:
    records["data/constants/opaque_obj_0"] = pickle.dumps(Gadget(canary))
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    edit_json(records, CONSTANTS, lambda table: table["config"].update(k=entry))


def sample_inputs(records: Records, canary: Path) -> None:
    records["data/sample_inputs/model.pt"] = saved(canary)


def raw_sample_inputs(records: Records, canary: Path) -> None:
    records["data/sample_inputs/model.pt"] = pickle.dumps(Gadget(canary))


def legacy_weights(records: Records, canary: Path) -> None:
    records["data/weights/model.pt"] = saved(canary)


def legacy_constants(records: Records, canary: Path) -> None:
    records["data/constants/model.pt"] = saved(canary)


def touch(canary: Path) -> str:
    return f"__import__('pathlib').Path({str(canary)!r}).touch()"


def expression(records: Records, canary: Path) -> None:
    size = {"as_expr": {"expr_str": touch(canary), "hint": {"as_int": 5}}}
    edit_graph(records, lambda graph: graph["tensor_values"]["x"]["sizes"].__setitem__(0, size))


def guard(records: Records, canary: Path) -> None:
    edit_json(records, MODEL, lambda program: program.update(guards_code=[touch(canary) + " is None"]))


def node_name(records: Records, canary: Path) -> None:
    """The name of an input is pasted into the source of a function; as a default value it is evaluated."""
    text = records[MODEL].decode()
    assert '"x"' in text
    records[MODEL] = text.replace('"x"', json.dumps(f"x={touch(canary)}")).encode()


def call(records: Records, target: str, *inputs: Any, output: Any) -> None:
    named = [{"name": name, "arg": arg, "kind": 1} for name, arg in inputs]
    node = {"target": target, "inputs": named, "outputs": [output], "metadata": {}, "name": "boo"}
    edit_graph(records, lambda graph: graph["nodes"].insert(0, node))


def operator(records: Records, canary: Path) -> None:
    """A function that torch lets a graph call: it imports the module that its argument names."""
    (canary.parent / "evil_module.py").write_text(f"open({str(canary)!r}, 'w')\n")
    target = "torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch"
    call(records, target, ("", {"as_string": "evil_module.Boo"}), output={"as_none": True})


def aten_from_file(records: Records, canary: Path) -> None:
    """Not every operator of aten computes: this one creates a file."""
    inputs = (("filename", {"as_string": str(canary)}), ("shared", {"as_bool": True}), ("size", {"as_int": 4}))
    call(records, "torch.ops.aten.from_file.default", *inputs, output={"as_tensor": {"name": "boo"}})
    edit_graph(records, lambda graph: graph["tensor_values"].update(boo=graph["tensor_values"]["p_layer_bias"]))


def imported_enum(records: Records, canary: Path) -> None:
    """A tree spec names a module to import; importing one that is on the path runs it."""
    (canary.parent / "evil_module.py").write_text(f"open({str(canary)!r}, 'w')\n")
    context = json.dumps([{"__enum__": True, "fqn": "evil_module:Boo", "name": "x"}])
    spec = json.dumps([1, {"type": "builtins.dict", "context": context, "children_spec": []}])
    edit_json(
        records,
        MODEL,
        lambda program: program["graph_module"]["module_call_graph"][0]["signature"].update(in_spec=spec),
    )


def inner_spec(records: Records, canary: Path) -> None:
    imported_enum(records, canary)

    def move(program: Any) -> None:
        first, inner = program["graph_module"]["module_call_graph"][:2]
        inner["signature"] = dict(first["signature"])
        plain: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
        pair = {"type": "builtins.tuple", "context": "null", "children_spec": [plain]}
        empty = {"type": "builtins.dict", "context": "[]", "children_spec": []}
        both = {"type": "builtins.tuple", "context": "null", "children_spec": [pair, empty]}
        first["signature"]["in_spec"] = json.dumps([1, both])

    edit_json(records, MODEL, move)


RUNS_WITH_TORCH: dict[str, Callable[[Records, Path], object]] = {
    "pickled weight": pickled_weight,
    "pickled constant": pickled_constant,
    "opaque constant": opaque_constant,
    "sample inputs": sample_inputs,
    "raw sample inputs": raw_sample_inputs,
    "legacy weights": legacy_weights,
    "legacy constants": legacy_constants,
    "expression": expression,
    "guard": guard,
    "node name": node_name,
    "operator": operator,
    "operator that writes": aten_from_file,
    "imported enum": imported_enum,
    "inner spec": inner_spec,
}


def attack(name: str, folder: Path) -> tuple[Path, Path]:
    """The hostile file, and the canary that shows whether it ran."""
    folder.mkdir(parents=True)
    records, canary = read_records(linear_model()), folder / "canary"
    RUNS_WITH_TORCH[name](records, canary)
    return write_records(records, folder / "model.pt2"), canary


@pytest.mark.parametrize("name", RUNS_WITH_TORCH)
def test_a_hostile_file_is_refused_and_runs_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, canary = attack(name, tmp_path / "attack")
    monkeypatch.syspath_prepend(canary.parent)
    with pytest.raises(Refused, match=r"model\.pt2: .*torch\.export\.save"):
        load_pt2(path)
    assert not canary.exists()
    assert "evil_module" not in sys.modules


PLAIN_TORCH = """
import sys, warnings, logging
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
import torch
for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    try:
        torch.export.load(folder + "/model.pt2").module()(torch.zeros(5, 4, dtype=torch.float64))
    except Exception:
        pass
    sys.path.remove(folder)
    sys.modules.pop("evil_module", None)
"""


def test_torch_alone_would_run_them(tmp_path: Path) -> None:
    canaries = {name: attack(name, tmp_path / str(i))[1] for i, name in enumerate(RUNS_WITH_TORCH)}
    canaries["old archive"] = old_archive(tmp_path / "old")[1]
    folders = [str(canary.parent) for canary in canaries.values()]
    subprocess.run([sys.executable, "-c", PLAIN_TORCH, *folders], capture_output=True, check=True)
    assert [name for name, canary in canaries.items() if not canary.exists()] == []


def old_archive(folder: Path) -> tuple[Path, Path]:
    """The layout of torch 2.7 and before, whose parts are pickles."""
    folder.mkdir()
    path, canary = folder / "model.pt2", folder / "canary"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("version", "8.20")
        archive.writestr("serialized_exported_program.json", read_records(linear_model())[MODEL])
        for part in ("state_dict", "constants", "example_inputs"):
            archive.writestr(f"serialized_{part}.pt", saved(canary))
    return path, canary


def test_an_old_archive_is_refused(tmp_path: Path) -> None:
    path, canary = old_archive(tmp_path / "old")
    with pytest.raises(Refused, match=r"old torch\.export file"):
        load_pt2(path)
    assert not canary.exists()


# --- strange graphs and archives that torch would not run, or not at once


def strings(key: str, value: str) -> Callable[[Records], object]:
    def edit(records: Records) -> None:
        def walk(item: Any) -> None:
            if isinstance(item, dict):
                for name, child in item.items():
                    if name == key and isinstance(child, str):
                        item[name] = value
                    walk(child)
            elif isinstance(item, list):
                for child in item:
                    walk(child)

        for record in (MODEL, WEIGHTS):
            edit_json(records, record, walk)

    return edit


def extra(name: str, content: bytes = b"x") -> Callable[[Records], object]:
    return lambda records: records.update({name: content})


def in_graph(change: Callable[[Any], object]) -> Callable[[Records], object]:
    return lambda records: edit_graph(records, change)


def in_program(change: Callable[[Any], object]) -> Callable[[Records], object]:
    return lambda records: edit_json(records, MODEL, change)


STRANGE: dict[str, Callable[[Records], object]] = {
    "a shared library for AOTInductor": extra("data/aotinductor/model/a.so", b"\x7fELF"),
    "a custom object": extra("data/constants/custom_obj_0"),
    "extra files": extra("extra/notes.txt"),
    "a second model": extra("models/other.json", b"{}"),
    "a path out of the archive": extra("../../evil"),
    "a record with a pickle": extra("model/data.pkl"),
    "a custom operator": strings("target", "torch.ops.mine.evil.default"),
    "an operator that saves": strings("target", "torch.ops.aten.save.default"),
    "an attribute of aten": strings("target", "torch.ops.aten.__class__.mro"),
    "an attribute of an operator": strings("target", "torch.ops.aten.linear.__call__"),
    "a method of an operator": strings("target", "torch.ops.aten.linear.overloads"),
    "a function that torch happens to import": strings("target", "torch.os.system"),
    "a function of torch": strings("target", "torch.load"),
    "a method caller": strings("target", "_operator.methodcaller"),
    "a module for an operator": strings("target", "math.exp"),
    "a registered extension": strings("target", "#ext:op"),
    "a name with a dunder": strings("name", "__class__"),
    "a name with a newline": strings("name", "x\n"),
    "a name in another script": strings("name", "х"),  # a Cyrillic letter
    "a parameter with a quote": strings("parameter_name", 'layer."+boo+"'),
    "a parameter with a dunder": strings("parameter_name", "layer.__dict__"),
    "a payload outside its folder": strings("path_name", "../../models/model.json"),
    "an endless power": strings("expr_str", "Pow(Integer(9), Pow(Integer(9), Integer(99)))"),
    "an attribute in an expression": strings("expr_str", "Integer(1).__class__"),
    "a function in an expression": strings("expr_str", "preview(Integer(1))"),
    "an endless expression": strings("expr_str", "(" * 5000),
    "a long integer": strings("expr_str", "Integer(" + "9" * 400 + ")"),
    "another verifier": in_program(lambda program: program.update(verifiers=["EVIL"])),
    "a named tuple": in_program(
        lambda program: program["graph_module"].update(treespec_namedtuple_fields={"os": {"field_names": ["x"]}})
    ),
    "a custom object in the graph": in_graph(
        lambda graph: graph.update(custom_obj_values={"x": {"name": "x", "class_fqn": "evil"}})
    ),
    "an operator as an argument": in_graph(
        lambda graph: graph["nodes"][0]["inputs"][0].update(arg={"as_operator": "torch.os.system"})
    ),
    "a custom object as an argument": in_graph(
        lambda graph: graph["nodes"][0]["inputs"][0].update(arg={"as_custom_obj": {"name": "x", "class_fqn": "y"}})
    ),
    "a model that changes its buffers": in_program(
        lambda program: program["graph_module"]["signature"]["output_specs"].append(
            {"buffer_mutation": {"arg": {"name": "linear"}, "buffer_name": "b"}}
        )
    ),
    "two inputs": in_program(
        lambda program: program["graph_module"]["module_call_graph"][0]["signature"].update(in_spec="[1, null]")
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_no_plain_model_needs_is_refused(name: str, tmp_path: Path) -> None:
    records = read_records(linear_model())
    STRANGE[name](records)
    with pytest.raises(Refused, match=r"model\.pt2: "):
        load_pt2(write_records(records, tmp_path / "model.pt2"))


def test_metadata_is_dropped_unread(tmp_path: Path) -> None:
    records = read_records(linear_model())
    odd = {"stack_trace": "\n    boom()", "source_fn_stack": "x,torch.os.system", "custom": "{"}
    edit_graph(records, lambda graph: graph["nodes"][0].update(metadata=odd))
    assert load_pt2(write_records(records, tmp_path / "model.pt2")).dtype == torch.float64


ZIPS: dict[str, tuple[Callable[[bytes], bytes], type[Exception]]] = {
    "a pickle of protocol 0": (lambda _: pickle.dumps({"a": 1}, protocol=0), Refused),
    "a pickle of protocol 2": (lambda _: pickle.dumps({"a": 1}, protocol=2), Refused),
    "a pickle of protocol 5": (lambda _: pickle.dumps({"a": 1}, protocol=5), Refused),
    "a compressed pickle": (lambda _: zlib.compress(pickle.dumps({"a": 1})), Refused),
    "a shared library": (lambda _: b"\x7fELF" + bytes(100), Refused),
    "an HDF5 file": (lambda _: b"\x89HDF\r\n\x1a\n" + bytes(100), Refused),
    "a second zip in front": (lambda data: data + data, Refused),
    "something in front": (lambda data: b"#!/bin/sh\n" + data, Unreadable),
    "something behind": (lambda data: data + b"x", Unreadable),
    "half a file": (lambda data: data[: len(data) // 2], Unreadable),
    "a damaged file": (lambda data: data.replace(b"linear", b"lynear", 1), Unreadable),
    "nothing": (lambda _: b"", Unreadable),
    "a text": (lambda _: b"id,age\n1,2\n", Unreadable),
    "zeros": (lambda _: bytes(1000), Unreadable),
}


@pytest.mark.parametrize("name", ZIPS)
def test_files_of_another_kind(name: str, tmp_path: Path) -> None:
    change, expected = ZIPS[name]
    path = tmp_path / "model.pt2"
    path.write_bytes(change(linear_model()))
    with pytest.raises(expected, match=r"model\.pt2: "):
        load_pt2(path)


def test_files_that_other_libraries_save(tmp_path: Path) -> None:
    path, canary = tmp_path / "model.pt2", tmp_path / "canary"
    path.write_bytes(saved(canary))
    with pytest.raises(Refused, match=r"torch\.save"):
        load_pt2(path)
    with path.open("wb") as file:
        torch.save(Gadget(canary), file, _use_new_zipfile_serialization=False)
    with pytest.raises(Refused, match="a pickle"):
        load_pt2(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), str(path))  # type: ignore[no-untyped-call]
    with pytest.raises(Refused, match=r"TorchScript|torch\.save"):
        load_pt2(path)
    with path.open("wb") as file:
        np.save(file, np.array([Gadget(canary)], dtype=object), allow_pickle=True)
    with pytest.raises(Refused, match="NumPy"):
        load_pt2(path)
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(2))
    with pytest.raises(Refused, match="NumPy"):
        load_pt2(path)
    assert not canary.exists()


def test_a_compressed_record_is_refused(tmp_path: Path) -> None:
    records = read_records(linear_model()) | {"data/weights/weight_9": bytes(10**8)}
    path = write_records(records, tmp_path / "model.pt2", zipfile.ZIP_DEFLATED)
    with pytest.raises(Refused, match="compressed"):
        load_pt2(path)


def test_a_record_twice_is_refused(tmp_path: Path) -> None:
    path = write_records(read_records(linear_model()), tmp_path / "model.pt2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"model/{MODEL}", b"{}")
    with pytest.raises(Refused, match="two records"):
        load_pt2(path)


MALFORMED: dict[str, Callable[[Records], object]] = {
    "no graph": lambda records: records.pop(MODEL),
    "no weights": lambda records: records.pop("data/weights/weight_0"),
    "no sample inputs": lambda records: records.pop("data/sample_inputs/model.pt"),
    "empty weights": extra("data/weights/weight_0", b""),
    "short weights": extra("data/weights/weight_0", bytes(8)),
    "uneven weights": extra("data/weights/weight_0", bytes(95)),
    "another version": extra("archive_version", b"9"),
    "another byte order": extra("byteorder", b"big"),
    "a graph that is no JSON": extra(MODEL, b"{"),
    "a graph that is a number": extra(MODEL, b"7"),
    "an empty graph": extra(MODEL, b"{}"),
    "a graph nested without end": extra(MODEL, b'{"graph_module":' * 100_000),
    "sample inputs that are damaged": extra("data/sample_inputs/model.pt", b"PK\x03\x04" + bytes(50)),
    "a table that is a list": extra(WEIGHTS, b"[]"),
    "a table without form": extra(WEIGHTS, b'{"config": {"layer.weight": 3}}'),
    "another schema": in_program(lambda program: program.update(schema_version={"major": 99, "minor": 1})),
    "a number for a name": in_graph(lambda graph: graph["nodes"][0].update(name=3, target=4)),
    "a missing node": in_graph(lambda graph: graph.update(nodes=[])),
    "a dtype that is none": in_graph(lambda graph: graph["tensor_values"]["x"].update(dtype=77)),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_torch_cannot_load_is_one_sentence(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    records = read_records(linear_model())
    MALFORMED[name](records)
    with pytest.raises(Unreadable, match=r"model\.pt2: ") as caught:
        load_pt2(write_records(records, tmp_path / "model.pt2"))
    assert len(str(caught.value)) < 600
    assert capfd.readouterr() == ("", "")


# --- safe, but no classifier of rows: the model breaks its contract


class Odd(nn.Module):
    """A layer, and what is done with it."""

    def __init__(self, act: Callable[..., Any]) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.act = act

    def forward(self, *x: torch.Tensor) -> Any:
        return self.act(self.layer, *x)


def exported(act: Callable[..., Any], inputs: int = 1) -> bytes:
    buffer, rows = io.BytesIO(), torch.export.Dim("rows")
    with warnings.catch_warnings(action="ignore"):
        examples, shapes = (torch.zeros(5, 4),) * inputs, ({0: rows},) * inputs
        torch.export.save(torch.export.export(Odd(act).eval(), examples, dynamic_shapes=(shapes,)), buffer)
    return buffer.getvalue()


BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "a tuple": (
        lambda: exported(lambda layer, x: (layer(x), x)),
        r"returned a tuple of \(rows, 3\), \(rows, 4\); wanted one tensor \(rows, classes\)",
    ),
    "a tuple of one": (lambda: exported(lambda layer, x: (layer(x),)), r"returned a tuple of \(rows, 3\);"),
    "a list": (lambda: exported(lambda layer, x: [layer(x)]), r"returned a list of \(rows, 3\);"),
    "a dict": (lambda: exported(lambda layer, x: {"my logits": layer(x)}), r"returned a dict of \(rows, 3\);"),
    "an ordered dict": (
        lambda: exported(lambda layer, x: OrderedDict(out=layer(x), aux=x)),
        r"returned a dict of \(rows, 3\), \(rows, 4\);",
    ),
    "a nest": (lambda: exported(lambda layer, x: (layer(x), [x, {"k": x}])), r"returned a tuple of .*\(rows, 4\);"),
    "a number too": (lambda: exported(lambda layer, x: (layer(x), 3)), r"\(rows, 3\), something that is no tensor;"),
    "two inputs": (
        lambda: exported(lambda layer, x, y: layer(x + y), 2),
        r"takes \(rows, 4\) and \(rows, 4\); wanted one tensor by position, \(rows, features\)",
    ),
    "noise": (
        lambda: exported(lambda layer, x: layer(x) + torch.randn_like(layer(x))),
        r"output changes between calls: it draws random numbers \(randn_like\)",
    ),
    "noise in place": (lambda: exported(lambda layer, x: layer(x).uniform_()), r"random numbers \(uniform_?\)"),
    "noise without gradients": (lambda: exported(quiet_noise), r"random numbers \(rand\)"),
    "whole numbers": (lambda: export(nn.Embedding(9, 3), torch.zeros(5, 4, dtype=torch.int64)), r"torch\.int64"),
}


def quiet_noise(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """In a graph inside the graph."""
    with torch.no_grad():
        noise = torch.rand(x.shape[0], 3)
    result: torch.Tensor = layer(x) + noise
    return result


@pytest.mark.parametrize("name", BROKEN)
def test_a_safe_model_that_is_no_classifier_breaks_its_contract(name: str, tmp_path: Path) -> None:
    make, message = BROKEN[name]
    path = tmp_path / "model.pt2"
    path.write_bytes(make())
    with pytest.raises(Broken, match=rf"model\.pt2: the model.*{message}") as caught:
        load_pt2(path)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", [*RUNS_WITH_TORCH])
def test_a_broken_contract_hides_no_attack(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unsafe is refused, whatever else is wrong."""
    records, canary = read_records(linear_model()), tmp_path / "canary"
    monkeypatch.syspath_prepend(tmp_path)
    spec = '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]'
    edit_json(records, MODEL, lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(out_spec=spec))
    with pytest.raises(Broken):
        load_pt2(write_records(records, tmp_path / "model.pt2"))
    RUNS_WITH_TORCH[name](records, canary)
    with pytest.raises(Refused):
        load_pt2(write_records(records, tmp_path / "model.pt2"))
    assert not canary.exists()


SPECS = {
    "a type to import": '[1, {"type": "evil_module.Boo", "context": "null", "children_spec": []}]',
    "a named tuple": '[1, {"type": "collections.namedtuple", "context": "evil_module.Boo", "children_spec": []}]',
    "an enum among the keys": (
        r'[1, {"type": "builtins.dict", "context": "[{\"__enum__\": true, \"fqn\": \"evil:B\"}]", "children_spec": []}]'
    ),
    "a quote in a key": r'[1, {"type": "builtins.dict", "context": "[\"a\\\"b\"]", "children_spec": []}]',
    "a list of specs": ["[1, 2]"],
}


@pytest.mark.parametrize("key", ["in_spec", "out_spec"])
@pytest.mark.parametrize("name", SPECS)
def test_trees_of_other_types_stay_refused(name: str, key: str, tmp_path: Path) -> None:
    records = read_records(linear_model())
    calls = {key: SPECS[name]}
    edit_json(records, MODEL, lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(calls))
    with pytest.raises(Refused, match=rf"{key} = "):
        load_pt2(write_records(records, tmp_path / "model.pt2"))


LEAF, OPENING = '{"type": null, "context": null, "children_spec": []}', '{"type": "builtins.list", "context": "null", '
LONG_SPECS = {
    "wide": f"[1, {', '.join([LEAF] * 5000)}]",
    "deep": "[1, " + (OPENING + '"children_spec": [') * 900 + "]",
    "many keys": r'[1, {"type": "builtins.dict", "context": "[' + r"\"a\", " * 5000 + "]",
}


@pytest.mark.parametrize("name", LONG_SPECS)
def test_trees_without_end_are_one_sentence(name: str, tmp_path: Path) -> None:
    records = read_records(linear_model())
    calls = {"out_spec": LONG_SPECS[name]}
    edit_json(records, MODEL, lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(calls))
    with pytest.raises((Refused, Unreadable), match=r"model\.pt2: "):
        load_pt2(write_records(records, tmp_path / "model.pt2"))


@pytest.mark.parametrize("act", [lambda layer, x: layer(x)[:, :1].T, lambda layer, x: layer(x)[:, 0]])
def test_a_single_tensor_of_another_shape_is_left_to_the_probe(act: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(exported(act))
    assert load_pt2(path).dtype == torch.float32


def test_the_auditor_tells_a_broken_contract_with_exit_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    good.model = exported(lambda layer, x: (layer(x), x))
    assert main([str(good.write(tmp_path / "tuple"))]) == 3
    assert "returned a tuple" in capsys.readouterr().err
    good = good_plan()
    good.model = exported(lambda layer, x: layer(x)[:, :2])
    assert main([str(good.write(tmp_path / "two"))]) == 3
    assert "its output is (10, 2), not (10, 3)" in capsys.readouterr().err


def test_the_auditor_refuses_with_exit_7(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    path, canary = attack("pickled weight", tmp_path / "attack")
    good.model = path.read_bytes()
    assert main([str(good.write(tmp_path / "good"))]) == 7
    assert "is stored as a pickle" in capsys.readouterr().err
    assert not canary.exists()


def test_the_file_is_read_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is audited is what is loaded: torch never sees the path, nor the archive itself."""
    path = tmp_path / "model.pt2"
    path.write_bytes(linear_model())
    seen: list[Any] = []
    load = torch.export.load

    def load_after_removal(file: Any) -> Any:
        path.unlink()
        seen.append(file)
        return load(file)

    monkeypatch.setattr(torch.export, "load", load_after_removal)
    assert load_pt2(path).dtype == torch.float64
    assert isinstance(seen[0], io.BytesIO)
    assert b"Linear" not in seen[0].getvalue()  # nor the stack traces
