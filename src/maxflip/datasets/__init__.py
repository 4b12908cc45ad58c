"""Loaders for public data, and a generator of synthetic data shaped like private ones. See docs/data.md.

Nothing is downloaded: each loader reads from a folder.
"""

from maxflip.datasets.credit import credit_default
from maxflip.datasets.insurer import insurance
from maxflip.datasets.mimic import mimic3
from maxflip.datasets.open_university import aggregates, oulad
from maxflip.datasets.physionet import physionet2012
from maxflip.datasets.samples import Sequences, Table

__all__ = [
    "Sequences",
    "Table",
    "aggregates",
    "credit_default",
    "insurance",
    "mimic3",
    "oulad",
    "physionet2012",
]
