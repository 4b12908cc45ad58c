"""Model files of other kinds are told by content and refused with a way out; what is nothing of the sort is not."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import pickle
import random
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch

from maxflip import InputError, OutputError, UnsafeError
from maxflip.models.files import load_classifier
from maxflip_verify.__main__ import main
from maxflip_wall import Refused, Unavailable, Unreadable, load_model, read
from tests.test_cli import folder, invoke, model
from tests.verify.good_plan import good_plan

__all__ = ["folder", "model"]  # fixtures


class Gadget:
    """Pickled, it is a call that creates the file `canary`."""

    def __reduce__(self) -> Any:
        return open, ("canary", "w")


def pickled(protocol: int) -> bytes:
    return pickle.dumps({"model": Gadget(), "weights": list(range(300))}, protocol)


def raw_lzma(kind: int) -> bytes:
    return lzma.compress(pickled(4), lzma.FORMAT_RAW, filters=[{"id": kind}])


def joblib_dump(compress: Any) -> bytes:
    buffer = io.BytesIO()
    joblib.dump({"model": Gadget(), "weights": np.arange(300.0)}, buffer, compress)
    return buffer.getvalue()


def numpy_objects() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Gadget()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def torch_script() -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)), buffer)  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def zip_of(**records: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return buffer.getvalue()


RUNS: dict[str, Callable[[], bytes]] = {
    **{f"a pickle of protocol {p}": lambda p=p: pickled(p) for p in range(6)},  # type: ignore[misc]
    **{f"zlib, level {n}": lambda n=n: zlib.compress(pickled(4), n) for n in range(10)},  # type: ignore[misc]
    "zlib, small window": lambda: zlib.compress(pickled(4), 6, 9),
    "raw deflate": lambda: zlib.compress(pickled(4), 6, -15),
    "gzip": lambda: gzip.compress(pickled(4)),
    "bz2": lambda: bz2.compress(pickled(4)),
    "xz": lambda: lzma.compress(pickled(4)),
    "lzma": lambda: lzma.compress(pickled(4), lzma.FORMAT_ALONE),
    "raw lzma": lambda: raw_lzma(lzma.FILTER_LZMA1),
    "raw lzma2": lambda: raw_lzma(lzma.FILTER_LZMA2),
    "raw lzma of an old pickle": lambda: lzma.compress(
        pickle.dumps({"a": 1}, 0), lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}]
    ),
    "an lz4 frame": lambda: b"\x04\x22\x4d\x18\x64\x40\xa7" + pickled(4),
    "a zstandard frame": lambda: b"\x28\xb5\x2f\xfd\x04\x00" + pickled(4),
    "joblib": lambda: joblib_dump(0),
    **{f"joblib, {how}": lambda how=how: joblib_dump(how) for how in ("zlib", "gzip", "bz2", "lzma", "xz")},  # type: ignore[misc]
    "joblib, level 3": lambda: joblib_dump(3),
    "old joblib": lambda: b"ZF0x1f                  " + zlib.compress(pickled(2)),
    "NumPy objects": numpy_objects,
    "TorchScript": torch_script,
    "Keras, HDF5": lambda: b"\x89HDF\r\n\x1a\n" + bytes(200),
    "Keras, zip": lambda: zip_of(**{"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b"\x89HDF"}),
    "a zip with a pickle": lambda: zip_of(**{"model.pkl": pickled(4)}),
    "YAML, a call": lambda: b"!!python/object/apply:builtins.open [canary, w]\n",
    "YAML, in a flow": lambda: b"a: [1, {b: !!python/name:os.system }]\n",
    "YAML, in full": lambda: b"a: !<tag:yaml.org,2002:python/object/new:Thing> {}\n",
    "YAML, a tag of its own": lambda: b"layers:\n  - name: one\n    kernel: !Layer {units: 3}\n",
    "YAML, at the root": lambda: b"--- !model\nunits: 3\n",
    "YAML, in a list": lambda: b"- !relu\n- !softmax\n",
    "YAML, a short hand": lambda: b"%TAG ! tag:example.org,2000:\n---\na: 1\n",
}


@pytest.mark.parametrize("name", RUNS)
def test_what_may_run_code_is_refused_with_a_way_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.pt2").write_bytes(RUNS[name]())
    with pytest.raises(UnsafeError, match=r"model\.pt2: looks like .*torch\.export\.save") as caught:
        load_classifier(Path("model.pt2"), output="logits", classes=["a", "b"])
    assert caught.value.exit_code == 7
    assert not Path("canary").exists()


def noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(5000)


def letters(seed: int) -> bytes:
    return "".join(random.Random(seed).choices("abcdefgh ijklmnop,.;:!?\n-0123456789(){}[]", k=5000)).encode()


NOTHING: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "zeros": lambda: bytes(1000),
    "a word": lambda: b"hello",
    "a full stop": lambda: b".",
    "a number": lambda: b"0.5,0.25\n",  # POP, STOP: opcodes, but of no pickle
    "an answer": lambda: b"No. Not at all.\n",
    "a formula": lambda: b"x^2 + y^2 = 1, and so on\n",  # the first bytes of zlib
    "a table": lambda: b"id,age\nP-1,2\n",
    "plain YAML": lambda: b"layers:\n  - name: one\n    units: 3  # wow!\n",
    "an exclamation": lambda: b"Note: this is it!!\nWow!\n- yes !\n",
    "a long line": lambda: b"-" * 3_000_000 + b" !",
    "a long text": lambda: b"V" * 3_000_000,
    "JSON": lambda: b'{"a": [1, 2]}',
    "safetensors": lambda: b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ",
    **{f"noise {seed}": lambda seed=seed: noise(seed) for seed in range(20)},  # type: ignore[misc]
    **{f"letters {seed}": lambda seed=seed: letters(seed) for seed in range(20)},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_no_model_at_all_is_an_input_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(NOTHING[name]())
    with pytest.raises(InputError, match=r"model\.pt2: neither a \.pt2, a \.skops nor .*skops\.io\.dump") as caught:
        load_classifier(path, output="logits", classes=["a", "b"])
    assert caught.value.exit_code == 2


def test_a_bomb_is_not_unpacked_to_be_told() -> None:
    with pytest.raises(Refused, match="compressed"):
        load_model(zlib.compress(bytes(1 << 28), 9), "bomb")
    with pytest.raises(Refused, match="compressed"):
        load_model(lzma.compress(bytes(1 << 26), lzma.FORMAT_ALONE), "bomb")


# --- files that are there but cannot be read ---


def failing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("maxflip_wall.files.os.open", fail)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.EMFILE])
def test_a_model_that_cannot_be_read_is_exit_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    path = tmp_path / "model.pt2"
    path.touch()
    failing(monkeypatch, number)
    with pytest.raises(Unavailable, match=r"model\.pt2: cannot be read: .*permissions"):
        read(path)
    with pytest.raises(OutputError) as caught:
        load_classifier(path)
    assert caught.value.exit_code == 4


def test_a_disk_that_fails_halfway_is_exit_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "model.pt2"
    path.touch()
    monkeypatch.setattr("maxflip_wall.files.os.fdopen", lambda handle, _: Failing())
    with pytest.raises(Unavailable, match="Input/output error"):
        read(path)


def test_a_path_that_is_no_plain_file_is_exit_2(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("link")
    for name in ("absent", ".", "pipe", "link", "n" * 300, "pipe/x"):
        with pytest.raises(Unreadable) as caught:
            read(tmp_path / name)
        assert caught.value.exit_code == 2


def test_the_programs_give_these_exit_codes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = good_plan().write(tmp_path / "good")
    (folder / "model.pt2").write_bytes(zlib.compress(pickled(4), 3))
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 7
    assert "skops.io.dump" in done.stderr
    failing(monkeypatch, errno.EACCES)
    assert main([str(plan)]) == 4
    assert invoke("verify", plan).exit_code == 4
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan").exit_code == 4
