"""Networks for sequences as torch modules, stored in .safetensors files (docs/networks.md)."""

from maxflip.networks.base import SequenceNetwork
from maxflip.networks.cudnn import differentiable_in_eval
from maxflip.networks.gru_d import GRUD
from maxflip.networks.sparse_time_lstm import SparseTimeLSTM
from maxflip.networks.store import load_network, save_network
from maxflip.networks.transformer import SequenceTransformer

__all__ = [
    "GRUD",
    "SequenceNetwork",
    "SequenceTransformer",
    "SparseTimeLSTM",
    "differentiable_in_eval",
    "load_network",
    "save_network",
]
