"""The wall in front of torch.export.load, which can run code from a .pt2 file in a dozen ways.

It unpickles records, evaluates sizes with sympy, resolves operators with getattr, imports types, and executes Python
source with names and guards pasted in. So the file is read once into memory and never handed to torch: what is
recognised by allowlist.toml is copied, word by word, into a new archive, and torch loads that. What is not
recognised is a reason to refuse the file.
"""

import io
import json
import logging
import pickletools
import re
import tomllib
import warnings
import zipfile
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from maxflip_wall.files import Refused, Unreadable, read, reading

ALLOWED = tomllib.loads(files("maxflip_wall").joinpath("allowlist.toml").read_text("utf-8"))
HARMLESS = frozenset(ALLOWED["graph"]["operators"]["aten"].split())
REMEDY = ". Save it with torch.export.save(torch.export.export(model.eval(), ...), 'model.pt2')"
MODEL, SAMPLE_INPUTS = "models/model.json", "data/sample_inputs/model.pt"
CONFIGS = {"data/weights/": "model_weights_config.json", "data/constants/": "model_constants_config.json"}
FIXED = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
IMPORTS = {"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}  # all pickle opcodes that find code


@dataclass(frozen=True)
class LoadedModel:
    """A model that passed the audit: call `module` on a batch of `dtype`."""

    module: torch.nn.Module
    dtype: torch.dtype


def audit_pt2(path: Path | str) -> None:
    """Raise Refused or Unreadable unless the model at `path` may be opened."""
    clean_archive(read(Path(path)), str(path), torch.device("cpu"))


def load_pt2(path: Path | str, device: str = "cpu") -> LoadedModel:
    """Audit the model at `path` and load it for `device`, on whichever it was exported."""
    return load_bytes(read(Path(path)), str(path), device)


def load_bytes(data: bytes, name: str, device: str = "cpu") -> LoadedModel:
    archive = clean_archive(data, name, torch.device(device))
    log = logging.getLogger("torch.export")  # it logs a traceback where the caller needs one sentence
    log.disabled = True
    try:
        with reading(f"{name}: passed the audit, but torch cannot load it"), warnings.catch_warnings(action="ignore"):
            program = torch.export.load(io.BytesIO(archive))
            (only,) = [node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs]
            if not only.meta["val"].dtype.is_floating_point:
                raise Unreadable(f"its input is {only.meta['val'].dtype}, not a floating one")
            return LoadedModel(program.module(), only.meta["val"].dtype)
    finally:
        log.disabled = False


def clean_archive(data: bytes, name: str, device: torch.device) -> bytes:
    """A new archive of what is recognised in `data`."""
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
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, content in parts.items():
            archive.writestr(f"model/{part}", content)
    return buffer.getvalue()


def _records(data: bytes) -> dict[str, bytes]:
    """The records of a plain zip with known names, which no two readers can understand differently."""
    if not data.startswith(b"PK\x03\x04"):
        raise _not_a_zip(data)
    if data[-22:-18] != b"PK\x05\x06":
        raise Unreadable("the zip is truncated, or something follows it")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        names = archive.namelist()
        if unknown := [name for name in names if not _is(ALLOWED["zip"]["records"], name.partition("/")[2])]:
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


def _not_a_zip(data: bytes) -> Exception:
    for start, kind in ALLOWED["first_bytes"].items():
        if data.startswith(start.encode("latin-1")):
            return Refused(f"looks like {kind}")
    try:  # the oldest pickles have no signature; to walk through their opcodes runs nothing
        list(islice(pickletools.genops(data), 10_000))
    except Exception:
        return Unreadable("neither a .pt2 nor another known kind of model file")
    return Refused("looks like a pickle, which runs code when loaded")


def _check_sample_inputs(record: bytes) -> None:
    """torch would unpickle these. They are not passed on, but a stranger in them tells what the file is."""
    if record and not record.startswith(b"PK\x03\x04"):
        raise Refused(f"{SAMPLE_INPUTS} is not a file of torch.save")
    with zipfile.ZipFile(io.BytesIO(record or b"PK\x05\x06" + bytes(18))) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                for opcode, argument, _ in pickletools.genops(file.read(len(record))) if name.endswith(".pkl") else ():
                    if opcode.name in IMPORTS and not _is(ALLOWED["zip"]["sample_input_imports"], str(argument)):
                        raise Refused(f"{SAMPLE_INPUTS} holds a pickle that calls {argument!s:.80}")


def _copy(value: Any, device: torch.device, key: str = "") -> Any:
    """A copy with known keys, strings of a known form, and `device` for every device; numbers are harmless."""
    strings, names = ALLOWED["graph"]["strings"], ALLOWED["graph"]["names"].get(key)
    if isinstance(value, dict):
        if key == "metadata":  # stack traces and the like, not needed to run
            return {}
        if key in ("device", "as_device"):
            return {"type": device.type, "index": device.index}
        for name in value:
            if not _is(names or ALLOWED["graph"]["keys"], name) and (names or name not in strings):
                raise Refused(f"{key or 'the graph'} has {name!r:.80}, which no plain model needs")
        return {name: _copy(child, device, "" if names else name) for name, child in value.items()}
    if isinstance(value, list):
        return [_copy(child, device, key) for child in value]
    if isinstance(value, str) and not (_is(strings.get(key, "(?!)"), value) and (key != "target" or _harmless(value))):
        raise Refused(f"the graph has {key} = {value!r:.120}, which is not on the list of the harmless")
    return value


def _is(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.replace("\n", ""), text, re.ASCII) is not None


def _harmless(target: str) -> bool:
    """An operator of aten must be one that computes on tensors and touches nothing else; others are listed in full."""
    if not target.startswith("torch.ops.aten."):
        return True
    packet, overload = target.split(".")[3:]
    operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    return packet.removesuffix("_") in HARMLESS and isinstance(operator, torch._ops.OpOverload)
