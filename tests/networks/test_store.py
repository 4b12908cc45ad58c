"""Networks come back from disk as they were; files that lie are found out before they cost anything."""

from __future__ import annotations

import json
import pickle
import random
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from maxflip import InputError, OutputError, UnsafeError
from maxflip.networks import GRUD, SequenceTransformer, SparseTimeLSTM, load_network, save_network
from maxflip_verify.networks import Network
from maxflip_wall import Refused, Unreadable, read_tensors
from tests.networks.stage import NETS, Batch, ask, make, random_batch

Header = dict[str, Any]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NETS)
def test_a_network_comes_back_bit_for_bit(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    net, batch = make(name, dtype), random_batch(dtype=dtype)
    save_network(net, tmp_path / "model.safetensors")
    back = load_network(tmp_path / "model.safetensors")
    assert type(back) is type(net)
    assert not back.training
    assert back.arguments() == net.arguments()
    assert torch.equal(ask(back, batch), ask(net, batch))
    assert all(parameter.requires_grad for parameter in back.parameters())  # it can be trained on
    save_network(back, tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()


def test_names_come_back(tmp_path: Path) -> None:
    save_network(GRUD(["a", "é"], 3, ["worse", "stable"], ["sex"]), tmp_path / "model.safetensors")
    back = load_network(tmp_path / "model.safetensors")
    assert (back.features, back.static_features, back.class_names) == (("a", "é"), ("sex",), ("worse", "stable"))


def test_other_programs_can_read_the_file(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    net = make("SequenceTransformer")
    save_network(net, tmp_path / "model.safetensors")
    tensors = load_file(tmp_path / "model.safetensors")
    assert tensors.keys() == net.state_dict().keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("name", NETS)
def test_the_auditor_finds_the_same_probabilities(name: str, dtype: torch.dtype, near: float, tmp_path: Path) -> None:
    for seed in range(3):
        net, batch = make(name, dtype, seed), random_batch(seed, n=6, steps=8, dtype=dtype)
        save_network(net, tmp_path / "model.safetensors")
        auditor = Network.load(tmp_path / "model.safetensors")
        assert auditor.features == (list(net.features) if net.features else None)
        ours = torch.softmax(ask(net, batch).double(), dim=1).detach()
        for j in range(6):
            one: Batch = batch.sample(j)
            theirs = auditor.probabilities(
                one.x[0].numpy(), one.observed[0].numpy(), one.time[0].numpy(), one.static[0].numpy()
            )
            assert theirs.dtype == np.float64
            assert theirs.tolist() == pytest.approx(ours[j].tolist(), rel=0, abs=near)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (torch.nn.Linear(2, 2), "Linear cannot be saved"),
        (GRUD(2, 3).half(), "wanted float32 or float64"),
        (torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2)), "cannot be saved"),
    ],
    ids=["stranger", "half", "changed"],
)
def test_what_cannot_be_saved_is_told(net: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        save_network(net, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    net = GRUD(2, 3)
    net.gates.bias.data[4] = float("nan")
    with pytest.raises(InputError, match=r"gates\.bias holds a value that is not finite"):
        save_network(net, tmp_path / "model.safetensors")


def test_files_that_are_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.safetensors: No such file"):
        load_network(tmp_path / "no.safetensors")
    with pytest.raises(OutputError):
        save_network(GRUD(2, 3), tmp_path / "missing" / "model.safetensors")


def parts(data: bytes) -> tuple[Header, bytes]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def joined(header: Header, numbers: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def good(tmp_path: Path, net: Any = None) -> bytes:
    save_network(net or GRUD(2, 3), tmp_path / "good.safetensors")
    return (tmp_path / "good.safetensors").read_bytes()


def says(**changes: Any) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        told = json.loads(header["__metadata__"]["maxflip"])
        told |= {key: value for key, value in changes.items() if key in told}
        told["arguments"] |= {key: value for key, value in changes.items() if key not in told}
        header["__metadata__"]["maxflip"] = json.dumps(told)

    return change


def entry(name: str, **changes: Any) -> Callable[[Header], None]:
    return lambda header: header[name].update(changes)


LIES: dict[str, tuple[Callable[[Header], None], str]] = {
    "a huge shape": (entry("scale", shape=[2**40, 2**40]), "does not take the bytes"),
    "a negative size": (entry("scale", shape=[-2]), "whole numbers"),
    "a size that is no number": (entry("scale", shape=[True, 2]), "whole numbers"),
    "an empty tensor": (entry("scale", shape=[0], data_offsets=[0, 0]), "does not take the bytes"),
    "another dtype": (entry("scale", dtype="I64"), "wanted F32 or F64"),
    "an unhashable dtype": (entry("scale", dtype=["F32"]), "wanted F32 or F64"),
    "a shape of nine": (entry("scale", shape=[2, 1, 1, 1, 1, 1, 1, 1, 1]), "does not take the bytes"),
    "an overlap": (lambda h: h["scale"].update(data_offsets=h["shift"]["data_offsets"]), "without overlap or gap"),
    "offsets behind the end": (entry("scale", data_offsets=[2**60, 2**60 + 8]), "without overlap or gap"),
    "a tensor that is left out": (lambda h: h.pop("scale") and None, "without overlap or gap"),
    "a shape of ten thousand": (entry("scale", shape=[2] + [1] * 9999), "does not take the bytes"),
    "a half": (entry("scale", dtype="F16", shape=[4]), "wanted F32 or F64"),
    "a type that numpy lacks": (entry("scale", dtype="BF16", shape=[4]), "wanted F32 or F64"),
    "one more tensor of nothing": (
        lambda h: h.update(more={"dtype": "F32", "shape": [0, 2**40], "data_offsets": [0, 0]}),
        "does not take the bytes",
    ),
    "one more tensor of nothing, and huge": (
        lambda h: h.update(more={"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}),
        "does not take the bytes",
    ),
    "no metadata at all": (lambda h: h.update(__metadata__=None), "__metadata__ must be texts"),
    "an unknown key": (entry("scale", more=1), "must have dtype, shape and data_offsets"),
    "metadata that is no text": (lambda h: h["__metadata__"].update(x=1), "__metadata__ must be texts"),
    "another name": (lambda h: h.update(scales=h.pop("scale")), "the tensor 'scale' is missing"),
    "a transposed tensor": (entry("gates.weight", shape=[4, 9]), r"'gates.weight' has shape \(4, 9\); wanted \(9, 4\)"),
    "no description": (lambda h: h["__metadata__"].clear(), "does not say of which network"),
    "a description that is no JSON": (lambda h: h["__metadata__"].update(maxflip="{"), "header is damaged"),
    "another network": (says(network="os.system"), "not known"),
    "a network of another kind": (says(network="SparseTimeLSTM"), "does not describe a SparseTimeLSTM"),
    "another format": (says(format=2), "format 2, output 'logits'; wanted 1"),
    "another output": (says(output="probabilities"), "output 'probabilities'; wanted 1 and 'logits'"),
    "a billion hidden units": (says(hidden=10**9), "hidden = 1000000000 is more than the 96 numbers in the file"),
    "a size that is a text": (says(hidden="3"), "hidden must be a whole number"),
    "a size that is a list": (says(hidden=[1, 2, 3]), "hidden must be"),
    "too few features": (says(inputs=1), r"'scale' has shape \(2,\); wanted \(1,\)"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused_by_library_and_auditor(lie: str, tmp_path: Path) -> None:
    header, numbers = parts(good(tmp_path))
    change, message = LIES[lie]
    change(header)
    path = tmp_path / "bad.safetensors"
    path.write_bytes(joined(header, numbers))
    with pytest.raises(InputError) as caught:
        load_network(path)
    assert str(path) in str(caught.value)
    with pytest.raises(Unreadable) as other:
        Network.load(path)
    assert str(path) in str(other.value)
    assert re.search(message, str(caught.value)), caught.value


ODD: dict[str, tuple[Any, Callable[[Header], None]]] = {
    "columns of a Sparse Time LSTM that are not there": (SparseTimeLSTM(3, 2, sparse=[1]), says(sparse=[-2])),
    "columns that are no list": (SparseTimeLSTM(3, 2, sparse=[1]), says(sparse=1)),
    "columns twice": (SparseTimeLSTM(3, 2, sparse=[1]), says(sparse=[1], time=[1])),
    "a billion layers": (SequenceTransformer(2, 8, layers=1), says(layers=10**9)),
    "many layers": (SequenceTransformer(2, 8, layers=1), says(layers=900)),
    "heads that do not divide": (SequenceTransformer(2, 8, layers=1), says(heads=3)),
    "no heads": (SequenceTransformer(2, 8, layers=1), says(heads=0)),
    "a size of 30 digits": (GRUD(2, 3), says(classes=10**30)),
}


@pytest.mark.parametrize("lie", ODD)
def test_arguments_that_lie_are_refused_at_once(lie: str, tmp_path: Path) -> None:
    net, change = ODD[lie]
    header, numbers = parts(good(tmp_path, net))
    change(header)
    (tmp_path / "bad.safetensors").write_bytes(joined(header, numbers))
    with pytest.raises(InputError):
        load_network(tmp_path / "bad.safetensors")
    with pytest.raises(Unreadable):
        Network.load(tmp_path / "bad.safetensors")


@pytest.mark.parametrize("extra", ["time_scale", "device", "self"])
def test_arguments_that_no_file_has_are_refused(extra: str, tmp_path: Path) -> None:
    header, numbers = parts(good(tmp_path))
    says(**{extra: 1.0})(header)
    (tmp_path / "bad.safetensors").write_bytes(joined(header, numbers))
    with pytest.raises(InputError, match="does not describe a GRUD"):
        load_network(tmp_path / "bad.safetensors")
    with pytest.raises(Unreadable, match=extra):
        Network.load(tmp_path / "bad.safetensors")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("gates.bias", np.nan, "not finite"), ("scale", 0.0, "above 0"), ("time_scale", -1.0, "above 0")],
)
def test_numbers_that_no_network_has_are_refused(name: str, value: float, message: str, tmp_path: Path) -> None:
    header, numbers = parts(good(tmp_path))
    begin = header[name]["data_offsets"][0]
    changed = numbers[:begin] + np.float32(value).tobytes() + numbers[begin + 4 :]
    (tmp_path / "bad.safetensors").write_bytes(joined(header, changed))
    with pytest.raises(InputError, match=message):
        load_network(tmp_path / "bad.safetensors")
    with pytest.raises(Unreadable, match=message):
        Network.load(tmp_path / "bad.safetensors")


def test_tensors_of_two_types_are_refused(tmp_path: Path) -> None:
    header, numbers = parts(good(tmp_path))
    last = max((key for key in header if key != "__metadata__"), key=lambda key: header[key]["data_offsets"])
    begin, end = header[last]["data_offsets"]
    header[last] |= {"dtype": "F64", "data_offsets": [begin, 2 * end - begin]}
    (tmp_path / "bad.safetensors").write_bytes(joined(header, numbers[:begin] + bytes(2 * (end - begin))))
    with pytest.raises(InputError, match="one type for all"):
        load_network(tmp_path / "bad.safetensors")
    with pytest.raises(Unreadable):
        Network.load(tmp_path / "bad.safetensors")


BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a header of 2^63 bytes": (
        lambda data: (2**63).to_bytes(8, "little") + data[8:],
        "claims 9223372036854775808 bytes",
    ),
    "a header of 100 MB": (lambda data: (10**8).to_bytes(8, "little") + data[8:], "claims 100000000 bytes"),
    "a header longer than the file": (lambda data: (10**6).to_bytes(8, "little") + data[8:], "truncated"),
    "a short file": (lambda data: data[:-1], "but 383 follow"),
    "something behind the end": (lambda data: data + b"x", "follow its header"),
    "a key twice": (lambda data: joined_text(data, b'{"scale":{},'), "occurs twice"),
    "a tensor twice": (
        lambda data: joined_text(data, b'{"scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'),
        "occurs twice",
    ),
    "a shape twice": (lambda data: within(data, b'"shape":[2]', b'"shape":[9],"shape":[2]'), "occurs twice"),
    "a description twice": (lambda data: within(data, b'"maxflip":', b'"maxflip":"{}","maxflip":'), "occurs twice"),
    "the metadata twice": (lambda data: joined_text(data, b'{"__metadata__":{"maxflip":"{}"},'), "occurs twice"),
    "a size that is no whole number": (lambda data: within(data, b'"shape":[2]', b'"shape":[2.0]'), "whole numbers"),
    "a size that is NaN": (lambda data: within(data, b'"shape":[2]', b'"shape":[NaN]'), "whole numbers"),
    "something behind the header": (lambda data: within(data, b"}}", b"}}x"), "JSONDecodeError"),
    "a header of megabytes": (lambda data: joined_text(data, b"{" + b" " * (2 << 20)), "at most 2097152 are read"),
    "a bottomless header": (lambda data: joined_text(data, b'{"a":' + b"[" * 500_000), "RecursionError"),
    "a header that is no JSON": (lambda data: joined_text(data, b"{["), "JSONDecodeError"),
    "a header that is no text": (lambda data: joined_text(data, b'{"\xff'), "UnicodeDecodeError"),
    "nothing": (lambda _: b"", "neither"),
    "eight bytes": (lambda data: data[:8], "neither"),
}


def joined_text(data: bytes, start: bytes) -> bytes:
    """The same file, whose header begins otherwise."""
    size = int.from_bytes(data[:8], "little")
    text = start + data[9 : 8 + size]
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def within(data: bytes, old: bytes, new: bytes) -> bytes:
    """The same file, with another text where `old` stands last in the header."""
    size = int.from_bytes(data[:8], "little")
    before, after = data[8 : 8 + size].rsplit(old, 1)
    text = before + new + after
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


@pytest.mark.parametrize("fault", BYTES)
def test_damaged_bytes_are_unreadable(fault: str, tmp_path: Path) -> None:
    change, message = BYTES[fault]
    with pytest.raises(Unreadable, match=message):
        read_tensors(change(good(tmp_path)), "bad.safetensors")


@pytest.mark.parametrize("name", ["GRUD", "SparseTimeLSTM", "SequenceTransformer"])
def test_library_and_auditor_take_the_same_files(name: str, tmp_path: Path) -> None:
    """One character of the header after the other is changed, dropped or doubled: both take it, or neither does."""
    data = good(tmp_path, make(name, torch.float32))
    size, draw, taken = int.from_bytes(data[:8], "little"), random.Random(0), 0
    header, numbers, path = data[8 : 8 + size], data[8 + size :], tmp_path / "bad.safetensors"
    for _ in range(400):
        place, new = draw.randrange(size), draw.choice(b'0123456789",:[]{}-.eaF \\')
        middle = draw.choice([bytes([new]), b"", header[place : place + 1] * 2])
        text = header[:place] + middle + header[place + 1 :]
        path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)
        answers = []
        for load, faults in ((load_network, (InputError, UnsafeError)), (Network.load, (Unreadable, Refused))):
            try:
                load(path)
            except faults as error:
                answers.append(f"{error}")
            else:
                answers.append("")
        assert bool(answers[0]) == bool(answers[1]), (text, answers)
        taken += not answers[0]
    assert 0 < taken < 400


TAKEN = {  # no errors
    "a shape of nine",
    "a half",
    "one more tensor of nothing",
    "an unknown key",
    "no metadata at all",
    "a tensor twice",
    "a description twice",
    "a header of megabytes",
}
IN_NUMPY = {  # errors of other kinds, from what is made of the file after it passed
    "a shape of ten thousand",
    "one more tensor of nothing, and huge",
    "a type that numpy lacks",
}


def test_what_the_safetensors_library_would_take(tmp_path: Path) -> None:
    """Why the wall reads these files itself: these it refuses. Where the library does so too, ours can go."""
    import safetensors.numpy

    files = {name: change(good(tmp_path)) for name, (change, _) in BYTES.items()}
    for name, (change, _) in LIES.items():
        header, numbers = parts(good(tmp_path))
        change(header)
        files[name] = joined(header, numbers)
    taken, in_numpy = set(), set()
    for name, data in files.items():
        try:
            read_tensors(data, name)
            continue  # refused later, for what it says of its network
        except (Unreadable, Refused):
            pass
        try:
            safetensors.numpy.load(data)
            taken.add(name)
        except safetensors.SafetensorError:
            pass
        except (ValueError, KeyError):
            in_numpy.add(name)
    assert (taken, in_numpy) == (TAKEN, IN_NUMPY)


def test_a_lying_file_costs_no_memory(tmp_path: Path) -> None:
    header, numbers = parts(good(tmp_path))
    entry("scale", shape=[2**31], data_offsets=[0, 2**33])(header)
    path = tmp_path / "bad.safetensors"
    path.write_bytes(joined(header, numbers))
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            load_network(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["pickle", "torch.save"])
def test_a_program_under_that_name_is_refused_as_unsafe(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    if kind == "pickle":
        path.write_bytes(pickle.dumps({"weights": list(range(300))}))
    else:
        torch.save(GRUD(2, 3).state_dict(), path)
    with pytest.raises(UnsafeError, match="runs code when loaded"):
        load_network(path)
    with pytest.raises(Refused):
        Network.load(path)
