"""Credit card clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from maxflip.datasets import credit_default
from maxflip.datasets.credit import FEATURES, PERSONAL
from maxflip.errors import InputError
from tests.real_data import real_data


def write(folder: Path, *labels: str) -> Path:
    header = ",".join(["ID", *FEATURES, "class"])
    rows = [",".join([str(j + 1), *(str(100 * j + i) for i in range(23)), label]) for j, label in enumerate(labels)]
    (folder / "default_credit_card.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_a_table_with_labels(tmp_path: Path) -> None:
    table = credit_default(write(tmp_path, "0", "1"))
    assert table.values.tolist() == [list(range(23)), list(range(100, 123))]
    assert table.labels.tolist() == [0, 1]
    cohort = table.cohort()
    assert cohort.ids.tolist() == ["1", "2"]
    assert cohort.features == FEATURES
    assert cohort.units["PAY_AMT1"] == "NT$"
    assert cohort.units["PAY_0"] == "months late"


def test_a_label_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 2: class is 7; wanted 0 \(paid\) or 1"):
        credit_default(write(tmp_path, "0", "7"))


def test_the_real_table() -> None:
    table = credit_default(real_data("credit_default"))
    assert table.values.shape == (30_000, 23)
    assert table.labels.sum() == 6636
    assert len(set(table.ids)) == 30_000
    assert table.values[0, :5].tolist() == [20_000, 2, 2, 1, 24]
    assert set(PERSONAL) < set(table.features)
