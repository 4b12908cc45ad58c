"""Safe reading of .safetensors files: eight bytes with the length of the header, a JSON header, then the numbers.

Such files run no code, but a header can state wrong sizes. It is checked completely before any number is read. Arrays
are views of the file's bytes, so no memory is allocated for stated sizes.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip_wall.files import Refused, Unreadable, reading, unique_keys
from maxflip_wall.unknown import unknown_file

LARGEST_HEADER = 2 << 20  # the format allows 100 MB, but JSON may take thirty times its size in memory
DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


@dataclass(frozen=True)
class Tensors:
    """Content of a .safetensors file: texts, and read-only arrays."""

    metadata: dict[str, str]
    arrays: dict[str, NDArray[Any]]


def is_safetensors(data: bytes) -> bool:
    """Whether a JSON header begins at byte 8, as in no other known model format."""
    return data[8:9] == b"{"


def read_tensors(data: bytes, name: str) -> Tensors:
    """The tensors of a file of float32 or float64. Raises Unreadable, or Refused if it looks like a program."""
    with reading(name):
        if data.startswith(b"PK\x03\x04"):
            raise Refused("a zip, as torch.save writes it, which runs code when loaded; wanted a .safetensors file")
        if not is_safetensors(data):
            raise unknown_file(data)
        size = int.from_bytes(data[:8], "little")
        if size > LARGEST_HEADER:
            raise Unreadable(f"its header claims {size} bytes; at most {LARGEST_HEADER} are read")
        if 8 + size > len(data):
            raise Unreadable(f"truncated: its header claims {size} bytes, the file has {len(data)}")
        header = json.loads(data[8 : 8 + size].decode(), object_pairs_hook=unique_keys)
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
            raise Unreadable("its __metadata__ must be texts")
        numbers = memoryview(data)[8 + size :]
        ends = [0]
        for tensor, entry in sorted(header.items(), key=lambda item: _place(*item)):
            begin, end = _place(tensor, entry)
            if begin != ends[-1]:
                raise Unreadable(f"{tensor!r:.80} begins at byte {begin}; wanted {ends[-1]}, without overlap or gap")
            ends.append(end)
        if ends[-1] != len(numbers):
            raise Unreadable(f"its tensors take {ends[-1]} bytes, but {len(numbers)} follow its header")
        return Tensors(metadata, {tensor: _array(numbers, entry) for tensor, entry in header.items()})


def _place(tensor: str, entry: Any) -> tuple[int, int]:
    """(begin, end) of the tensor in bytes, after checking its entry, its type and its shape."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise Unreadable(f"{tensor!r:.80} must have dtype, shape and data_offsets, got {entry!r:.120}")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise Unreadable(f"{tensor!r:.80} is {kind!r:.40}; wanted F32 or F64")
    if not all(isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes) for sizes in (shape, offsets)):
        raise Unreadable(f"{tensor!r:.80}: shape and data_offsets must be whole numbers >= 0, got {entry!r:.120}")
    if (
        0 in shape
        or len(shape) > 8
        or len(offsets) != 2
        or offsets[1] - offsets[0] != math.prod(shape) * DTYPES[kind].itemsize
    ):
        raise Unreadable(f"{tensor!r:.80}: the shape {shape!r:.80} does not take the bytes {offsets!r:.80}")
    return offsets[0], offsets[1]


def _array(numbers: memoryview, entry: dict[str, Any]) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    return np.frombuffer(numbers[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
