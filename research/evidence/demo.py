"""What `maxflip demo` prints, and what its plan changes for one person."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from maxflip import Plan
from research.evidence.files import made_here, write

PERSON = "D004"
NAME = "maxflip-demo"


def run(folder: Path) -> tuple[str, Plan]:
    """The text as `make demo` prints it, and the plan; both are the same in every run."""
    command = [sys.executable, "-m", "maxflip", "demo", "--out", NAME]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout, Plan.load(folder / NAME)


def printed(text: str, plan: Plan) -> list[dict[str, Any]]:
    estimate, prices = plan.estimate, plan.prices or {}
    return [{"printed": text, "count": plan.count, "estimate": estimate, "people": len(plan.fates), **_named(prices)}]


def _named(prices: Any) -> dict[str, float]:
    return {f"price_{name}": float(price) for name, price in prices.items()}


def changes(plan: Plan) -> list[dict[str, Any]]:
    return [row for row in plan.table().to_pylist() if row["id"] == PERSON]


def keep() -> None:
    made = made_here("python -m research.evidence demo")
    with tempfile.TemporaryDirectory() as folder:
        text, plan = run(Path(folder))
    write("demo", printed(text, plan), made)
    write("demo_changes", changes(plan), made)
