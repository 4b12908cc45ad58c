"""Safe reading of untrusted files: plain files only, and no model that could run code.

This package is the only code that maxflip and its auditor share.
"""

from maxflip_wall.files import Broken, Refused, Unavailable, Unreadable, read, reading, unique_keys
from maxflip_wall.models import Loaded, load_model
from maxflip_wall.pt2 import LoadedModule
from maxflip_wall.safetensors import Tensors, is_safetensors, read_tensors
from maxflip_wall.skops import LoadedEstimator
from maxflip_wall.tree_files import TreeFile, is_tree_file, parse_trees

__all__ = [
    "Broken",
    "Loaded",
    "LoadedEstimator",
    "LoadedModule",
    "Refused",
    "Tensors",
    "TreeFile",
    "Unavailable",
    "Unreadable",
    "is_safetensors",
    "is_tree_file",
    "load_model",
    "parse_trees",
    "read",
    "read_tensors",
    "reading",
    "unique_keys",
]
