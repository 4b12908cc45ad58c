"""Networks on disk: their numbers in a .safetensors file, and in its header what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

import maxflip_wall
from maxflip._util.atomic import write_bytes
from maxflip._util.messages import listed, shown
from maxflip.errors import InputError, as_ours
from maxflip.networks.base import SequenceNetwork
from maxflip.networks.gru_d import GRUD
from maxflip.networks.sparse_time_lstm import SparseTimeLSTM
from maxflip.networks.transformer import SequenceTransformer

KINDS: dict[str, type[SequenceNetwork]] = {kind.__name__: kind for kind in (GRUD, SparseTimeLSTM, SequenceTransformer)}
KEY = "maxflip"  # one key for all: writers differ in the order of several, and the same network gives the same file
REMEDY = "Save it with maxflip.networks.save_network(net, 'model.safetensors')."


def save_network(net: SequenceNetwork, path: str | Path) -> None:
    """Write the network, whole or not at all: one of `KINDS`, all of it float32 or all of it float64."""
    from safetensors.torch import save

    kind = type(net).__name__
    if KINDS.get(kind) is not type(net):
        raise InputError(f"{kind} cannot be saved; wanted one of {listed(KINDS)}. Export other modules as .pt2.")
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in net.state_dict().items()}
    dtypes = {tensor.dtype for tensor in tensors.values()}
    if dtypes not in ({torch.float32}, {torch.float64}):
        raise InputError(f"the network is {listed(map(str, dtypes))}; wanted float32 or float64 throughout.")
    if faults := net.value_faults():
        raise InputError(faults)
    says = {"format": 1, "network": kind, "output": "logits", "arguments": net.arguments()}
    write_bytes(path, save(tensors, {KEY: json.dumps(says, sort_keys=True)}))


def load_network(path: str | Path) -> SequenceNetwork:
    """The network that `save_network` wrote, in eval mode. Nothing in the file is run, and no size in it believed."""
    try:
        return parse_network(maxflip_wall.read(Path(path)), str(path))
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error


def parse_network(data: bytes, name: str) -> SequenceNetwork:
    """The same from the bytes of a file; faults of the wall stay what they are."""
    held = maxflip_wall.read_tensors(data, name)
    try:
        return _network(held)
    except InputError as error:
        raise InputError([f"{name}: {fault}" for fault in error.problems]) from error


def _network(held: maxflip_wall.Tensors) -> SequenceNetwork:
    kind, arguments = _says(held)
    most = sum(array.size for array in held.arrays.values())
    for name, value in arguments.items():
        # Every size is that of some tensor: what is larger than all of them together is not even tried.
        if isinstance(value, int) and value > most:
            raise InputError(f"{name} = {value} is more than the {most} numbers in the file.")
    try:
        with torch.device("meta"):  # nothing is allocated for what the header claims
            net = KINDS[kind](**arguments)
        if net.arguments() != arguments:
            raise TypeError("some are missing or do not belong there")
    except (TypeError, RuntimeError, OverflowError) as error:
        raise InputError(f"its header does not describe a {kind}: {shown(arguments, 200)}. {REMEDY}") from error
    wanted = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
    faults = [f"the tensor {name!r} is missing." for name in wanted.keys() - held.arrays.keys()]
    faults += [f"the tensor {shown(name)} is no part of a {kind}." for name in held.arrays.keys() - wanted.keys()]
    for name, shape in wanted.items():
        if name in held.arrays and held.arrays[name].shape != shape:
            faults.append(f"the tensor {name!r} has shape {held.arrays[name].shape}; wanted {shape}.")
    if len(kinds := {array.dtype.name for array in held.arrays.values()}) > 1:
        faults.append(f"its tensors are {listed(sorted(kinds))}; wanted one type for all.")
    if faults:
        raise InputError(sorted(faults))
    net.load_state_dict({name: torch.tensor(array) for name, array in held.arrays.items()}, assign=True)
    if faults := net.value_faults():
        raise InputError(faults)
    return net.eval()


def _says(held: maxflip_wall.Tensors) -> tuple[str, dict[str, Any]]:
    """The name of the network and its constructor's arguments."""
    if KEY not in held.metadata:
        raise InputError(f"has tensors, but its header does not say of which network. {REMEDY}")
    try:
        says = json.loads(held.metadata[KEY])
        if says.keys() != {"format", "network", "output", "arguments"} or not isinstance(says["arguments"], dict):
            raise KeyError
    except (ValueError, AttributeError, KeyError, RecursionError) as error:
        raise InputError(f"its header is damaged: {shown(held.metadata[KEY], 120)}. {REMEDY}") from error
    if says["format"] != 1 or says["output"] != "logits":
        raise InputError(f"format {shown(says['format'])}, output {shown(says['output'])}; wanted 1 and 'logits'.")
    if not isinstance(says["network"], str) or says["network"] not in KINDS:
        raise InputError(f"the network {shown(says['network'])} is not known; wanted one of {listed(KINDS)}.")
    return says["network"], says["arguments"]
