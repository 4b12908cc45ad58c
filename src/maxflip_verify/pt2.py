"""The wall in front of torch.export.load, which can run code from a file in a dozen ways.

A .pt2 file is a zip. It is read once into memory and never handed to torch: what the audit recognises is copied
into a new archive, and torch loads that one. What the audit does not recognise is a reason to refuse the file.
"""

import io
import json
import logging
import pickletools
import warnings
import zipfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from maxflip_verify.files import Refused, Unreadable, parse_json, read
from maxflip_verify.program import ALLOWED, matches, rebuild, transcribe

REMEDY = "Save it with torch.export.save(torch.export.export(model.eval(), ...), 'model.pt2')."
MODEL, SAMPLE_INPUTS = "models/model.json", "data/sample_inputs/model.pt"
CONFIGS = {"data/weights/": "model_weights_config.json", "data/constants/": "model_constants_config.json"}
FIXED = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
IMPORTS = {"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}  # all pickle opcodes that find code
BROKEN_ZIP = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError)


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
    archive, dtype = clean_archive(data, name, torch.device(device))
    log = logging.getLogger("torch.export")  # logs a traceback where the caller needs one sentence
    log.disabled = True
    try:
        with warnings.catch_warnings(action="ignore"):
            return LoadedModel(torch.export.load(io.BytesIO(archive)).module(), dtype)
    except Exception as error:
        raise Unreadable(f"{name}: passed the audit, but torch cannot load it: {error!s:.300}") from error
    finally:
        log.disabled = False


def clean_archive(data: bytes, name: str, device: torch.device) -> tuple[bytes, torch.dtype]:
    """A new archive of the recognised parts of `data`, and the dtype of the model's input."""
    try:
        records = _records(data)
        _check_sample_inputs(records[SAMPLE_INPUTS])
        program, dtype = rebuild(parse_json(records[MODEL], MODEL), device)
        parts = {**FIXED, ".data/version": b"6", SAMPLE_INPUTS: b"", MODEL: json.dumps(program).encode()}
        for folder, config in CONFIGS.items():
            table = transcribe(parse_json(records[folder + config], config), device)
            parts |= _payloads(table["config"], records, folder)
            parts[folder + config] = json.dumps(table).encode()
    except (Refused, Unreadable) as error:
        raise type(error)(f"{name}: {error}. {REMEDY}") from error
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{name}: not a well-formed .pt2 ({error!r:.100}). {REMEDY}") from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, content in parts.items():
            archive.writestr(f"model/{part}", content)
    return buffer.getvalue(), dtype


def _records(data: bytes) -> dict[str, bytes]:
    """The records of a plain zip with known names, which no two readers can understand differently."""
    if not data.startswith(b"PK\x03\x04"):
        raise _not_a_zip(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            for name, info in found.items():
                for ending, kind in ALLOWED["zip"]["looks_like"].items():
                    if info.filename.endswith(ending):
                        raise Refused(f"looks like {kind}")
                if not matches(ALLOWED["zip"]["records"], name):
                    raise Refused(f"the zip has a record {info.filename!r:.120}, which no plain model needs")
                if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                    raise Refused(f"the record {name!r} is compressed, which torch never does")
            if len(found) < len(archive.infolist()) or sum(i.file_size for i in found.values()) > len(data):
                raise Refused("the zip has two records with one name or in one place")
            if data[-22:-18] != b"PK\x05\x06" or min(info.header_offset for info in found.values()) > 0:
                raise Refused("the zip has something before or after it")
            records = {name: archive.read(info) for name, info in found.items()}
    except BROKEN_ZIP as error:
        raise Unreadable(f"the zip is truncated or damaged: {error}") from error
    if any(records.get(name) != content for name, content in FIXED.items()):
        raise Unreadable(f"must say {FIXED}, got { ({name: records.get(name) for name in FIXED})!r:.200}")
    return records


def _not_a_zip(data: bytes) -> Exception:
    for start, kind in ALLOWED["first_bytes"].items():
        if data.startswith(start.encode("latin-1")):
            return Refused(f"looks like {kind}")
    try:  # the oldest pickles have no signature; to walk through the opcodes runs nothing
        for _ in islice(pickletools.genops(data), 10_000):
            pass
    except Exception:
        return Unreadable("neither a .pt2 nor another known kind of model file")
    return Refused("looks like a pickle, which runs code when loaded")


def _check_sample_inputs(record: bytes) -> None:
    """torch would unpickle these. They are not passed on, but a stranger in them tells what the file is."""
    try:
        with zipfile.ZipFile(io.BytesIO(record)) as archive:
            (info,) = [info for info in archive.infolist() if info.filename.endswith(".pkl")]
            with archive.open(info) as file:
                for opcode, argument, _ in pickletools.genops(file.read(len(record))):
                    known = matches(ALLOWED["zip"]["sample_input_imports"], str(argument))
                    if opcode.name in IMPORTS and not known:
                        raise Refused(f"{SAMPLE_INPUTS} holds a pickle that calls {argument!s:.80}")
    except (*BROKEN_ZIP, ValueError) as error:
        if record:
            raise Refused(f"{SAMPLE_INPUTS} is not what torch.save writes: {error}") from error


def _payloads(config: dict[str, Any], records: dict[str, bytes], folder: str) -> dict[str, bytes]:
    """The records that `config` names, which must be raw numbers (torch checks that views lie within them)."""
    for name, entry in config.items():
        if entry["use_pickle"] is not False or entry["tensor_meta"] is None:
            raise Refused(f"{folder}: {name!r:.80} is stored as a pickle, which runs code when loaded")
        if not records[folder + entry["path_name"]] and {"as_int": 0} not in entry["tensor_meta"]["sizes"]:
            raise Unreadable(f"{folder}: {name!r:.80} has no numbers; torch would take zeros")
    return {folder + entry["path_name"]: records[folder + entry["path_name"]] for entry in config.values()}
