"""UCI Default of Credit Card Clients: 30,000 clients of a bank in Taiwan; label: default in October 2005."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from maxflip._util.frozen import FrozenMap, read_only
from maxflip.datasets.reading import find_tables, read_columns
from maxflip.datasets.samples import Table
from maxflip.errors import InputError

TABLE = "default_credit_card"
FEATURES = (
    *("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"),
    *("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"),  # numbering of the source
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
)
PERSONAL = ("SEX", "EDUCATION", "MARRIAGE", "AGE")  # attributes that cannot be changed
CLASSES = ("paid", "defaulted")
_MONEY = ("LIMIT_BAL", "BILL_AMT", "PAY_AMT")
UNITS = FrozenMap(
    {name: "NT$" for name in FEATURES if name.startswith(_MONEY)}
    | {name: "months late" for name in FEATURES if name.startswith("PAY_") and not name.startswith("PAY_AMT")}
    | {"AGE": "years"}
)


def credit_default(root: str | Path) -> Table:
    (path,) = find_tables(root, [TABLE])
    numbers = dict.fromkeys(FEATURES, pa.float64())
    columns = read_columns(path, {"ID": pa.string(), **numbers, "class": pa.int64()})
    labels = columns["class"].astype(np.int64)
    other = (labels != 0) & (labels != 1)
    if other.any():
        row = int(np.argmax(other))
        raise InputError(f"{path}: row {row + 1}: class is {labels[row]}; wanted 0 (paid) or 1 (defaulted).")
    return Table(
        values=read_only(np.stack([columns[name] for name in FEATURES], axis=1)),
        ids=tuple(columns["ID"].tolist()),
        features=FEATURES,
        units=UNITS,
        source="credit_default",
        labels=read_only(labels),
        classes=CLASSES,
    )
