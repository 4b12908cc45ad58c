"""Safe loading of .pt2 files: torch.export.load can run code from such a file in a dozen ways.

It unpickles records, evaluates sizes with sympy, resolves operators with getattr, imports types, and executes Python
source that contains names and guards of the file. So the file is read once into memory and never passed to torch:
content that allowlist.toml recognises is copied into a new archive, which torch loads. A file with any other content is
refused.
"""

import io
import json
import logging
import pickletools
import warnings
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip_wall.allowlist import ALLOWED, matches
from maxflip_wall.contract import RANDOM, check_contract
from maxflip_wall.files import Broken, Refused, Unreadable, reading

HARMLESS = frozenset(ALLOWED["graph"]["operators"]["aten"].split()) | RANDOM
REMEDY = ". Save it with torch.export.save(torch.export.export(model.eval(), ...), 'model.pt2')"
MODEL, SAMPLE_INPUTS = "models/model.json", "data/sample_inputs/model.pt"
CONFIGS = {"data/weights/": "model_weights_config.json", "data/constants/": "model_constants_config.json"}
FIXED = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
IMPORTS = {"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}  # all pickle opcodes that import code


@dataclass(frozen=True)
class LoadedModule:
    """A torch model that passed the audit: call `module` on a batch of `dtype`."""

    module: torch.nn.Module
    dtype: torch.dtype
    features: None = None  # the file does not name the columns of the training data

    @property
    def says(self) -> dict[str, Any]:
        """Entries of a job's [model] table that the file states: none, neither output nor classes."""
        return {}

    def outputs(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, F) -> (n, k)"""
        with torch.no_grad():
            output: NDArray[np.float64] = self.module(torch.from_numpy(points).to(self.dtype)).double().numpy()
        return output


def load_module(data: bytes, name: str, device: str = "cpu") -> LoadedModule:
    """Audit a .pt2 and load it for `device`, whatever device it was exported on."""
    archive = clean_archive(data, name, torch.device(device))
    log = logging.getLogger("torch.export")  # it would log a traceback in addition to the exception
    log.disabled = True
    try:
        with reading(f"{name}: passed the audit, but torch cannot load it"), warnings.catch_warnings(action="ignore"):
            program = torch.export.load(io.BytesIO(archive))
            (only,) = [node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs]
            module, dtype = program.module(), only.meta["val"].dtype
    finally:
        log.disabled = False
    if not dtype.is_floating_point:
        raise Broken(f"{name}: the model's input is {dtype}; wanted a floating one")
    return LoadedModule(module, dtype)


def clean_archive(data: bytes, name: str, device: torch.device) -> bytes:
    """A new archive with the recognised content of `data`."""
    with reading(name, REMEDY):
        records = _records(data)
        _check_sample_inputs(records[SAMPLE_INPUTS])
        program = _copy(json.loads(records[MODEL]), device) | {"guards_code": []}  # torch would execute guards
        parts = {**FIXED, ".data/version": b"6", MODEL: json.dumps(program).encode(), SAMPLE_INPUTS: b""}
        for folder, config in CONFIGS.items():
            table = _copy(json.loads(records[folder + config]), device)
            parts[folder + config] = json.dumps(table).encode()
            for weight, entry in table["config"].items():
                content = parts[folder + entry["path_name"]] = records[folder + entry["path_name"]]
                if entry["use_pickle"] is not False or entry["tensor_meta"] is None:
                    raise Refused(f"{weight} is stored as a pickle, which runs code when loaded")
                if not content and {"as_int": 0} not in entry["tensor_meta"]["sizes"]:
                    raise Unreadable(f"{weight} has no numbers")
        check_contract(program)  # last, so that unsafe content is reported first
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, content in parts.items():
            archive.writestr(f"model/{part}", content)
    return buffer.getvalue()


def _records(data: bytes) -> dict[str, bytes]:
    """The records of a plain zip with known names. Refuses zips that readers could interpret differently."""
    if data[-22:-18] != b"PK\x05\x06":
        raise Unreadable("the zip is truncated, or something follows it")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        names = archive.namelist()
        if unknown := [name for name in names if not matches(ALLOWED["zip"]["records"], name.partition("/")[2])]:
            looks_like = ALLOWED["zip"]["looks_like"].items()
            kinds = [f"looks like {kind}" for end, kind in looks_like if any(name.endswith(end) for name in unknown)]
            raise Refused((kinds or [f"has the unknown record {unknown[0]!r:.120}"])[0])
        if any(info.compress_type or info.file_size != info.compress_size for info in infos.values()):
            raise Refused("has compressed records, which torch never writes")
        if len(infos) < len(names) or sum(info.file_size for info in infos.values()) > len(data):
            raise Refused("has two records with one name or in one place")
        if min(info.header_offset for info in infos.values()) > 0:
            raise Refused("has something before the zip")
        records = {name: archive.read(info) for name, info in infos.items()}
    if {name: records.get(name) for name in FIXED} != FIXED:
        raise Unreadable(f"its format is not {FIXED}")
    return records


def _check_sample_inputs(record: bytes) -> None:
    """Refuse pickles with unknown imports among the sample inputs. The sample inputs themselves are not copied."""
    if record and not record.startswith(b"PK\x03\x04"):
        raise Refused(f"{SAMPLE_INPUTS} is not a file of torch.save")
    with zipfile.ZipFile(io.BytesIO(record or b"PK\x05\x06" + bytes(18))) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                for opcode, argument, _ in pickletools.genops(file.read(len(record))) if name.endswith(".pkl") else ():
                    if opcode.name in IMPORTS and not matches(ALLOWED["zip"]["sample_input_imports"], str(argument)):
                        raise Refused(f"{SAMPLE_INPUTS} holds a pickle that calls {argument!s:.80}")


def _copy(value: Any, device: torch.device, key: str = "") -> Any:
    """A copy with known keys and strings of a known form only; every device becomes `device`. Numbers are harmless."""
    strings, names = ALLOWED["graph"]["strings"], ALLOWED["graph"]["names"].get(key)
    if isinstance(value, dict):
        if key == "metadata":  # stack traces and the like, not needed to run
            return {}
        if key in ("device", "as_device"):
            return {"type": device.type, "index": device.index}
        for name in value:
            if not matches(names or ALLOWED["graph"]["keys"], name) and (names or name not in strings):
                raise Refused(f"{key or 'the graph'} has {name!r:.80}, which no plain model needs")
        return {name: _copy(child, device, "" if names else name) for name, child in value.items()}
    if isinstance(value, list):
        return [_copy(child, device, key) for child in value]
    if isinstance(value, str) and not (
        matches(strings.get(key, "(?!)"), value) and (key != "target" or _harmless(value))
    ):
        raise Refused(f"the graph has {key} = {value!r:.120}, which is not on the list of the harmless")
    return value


def _harmless(target: str) -> bool:
    """Whether an aten operator only computes on tensors. Other targets are matched in full by the allowlist."""
    if not target.startswith("torch.ops.aten."):
        return True
    packet, overload = target.split(".")[3:]
    operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    return packet.removesuffix("_") in HARMLESS and isinstance(operator, torch._ops.OpOverload)
