"""Pictures of reports for the README and the docs, taken in chromium.

    python -m research.benchmarks.report_pictures --data DIR [--only demo credit stays]

The demo; clients of credit_default whom a small network expects to default; and patients in intensive care whom GRU-D
(research/experiments/weights) expects to die. DIR holds credit_default and physionet2012 (docs/data.md). Pictures go to
docs/pictures/report-*.png.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from playwright.sync_api import Browser, FloatRect, Page
from torch import nn

from maxflip import Budget, Cohort, Insight, Plan, Prices, Problem, TorchClassifier, look, solve
from maxflip._util.events import silent
from maxflip.cli.run_job import run_demo
from maxflip.datasets import credit_default, physionet2012
from maxflip.datasets.physionet_variables import LABS
from maxflip.io.plan_folder import load_insight
from maxflip.networks import load_network
from maxflip.report import render
from research.evidence.files import ROOT
from research.experiments.cohorts import WEIGHTS
from tests.chromium import chromium

PICTURES = ROOT / "docs" / "pictures"
LARGEST = 300_000  # bytes
CLIENTS, STAYS = 2_000, 600
SECTIONS = ("budgets", "frontier", "features", "everyone", "likeness", "groups")
AIR = 28
DESK, PHONE = (1200, 860), (390, 844)


@dataclass(frozen=True)
class Shown:
    plan: Plan
    insight: Insight | None


def demo(_data: Path) -> Shown:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        run_demo(out, silent)
        return Shown(Plan.load(out), load_insight(out))


def credit(data: Path) -> Shown:
    """Those who may change what they owe and pay back; the network is trained on the other clients."""
    table = credit_default(data / "credit_default")
    names = list(table.features)
    scale = table.values.std(axis=0)
    net = _fitted(table.values[CLIENTS:], table.labels[CLIENTS:], scale)
    money = [name for name in names if name.startswith(("BILL_AMT", "PAY_AMT"))]
    late = [name for name in names if name.startswith("PAY_") and name not in money]
    problem = Problem(
        classifier=TorchClassifier(net, output="logits", classes=["pays", "defaults"]),
        cohort=Cohort.table(
            table.values[:CLIENTS], ids=table.ids[:CLIENTS], features=names, units=table.units, source="credit_default"
        ),
        target="pays",
        margin=0.2,
        limits=dict.fromkeys([*late, *money], "observed"),
        directions=dict.fromkeys(late, "down"),
        budgets={
            "months": Budget(60.0, dict.fromkeys(late, 1.0), "absolute"),
            "money": Budget(600_000.0, dict.fromkeys(money, 1.0), "absolute"),
            "advisers": Budget(250, cost="count"),
        },
    )
    plan = solve(problem, Prices())
    ages = table.values[:CLIENTS, names.index("AGE")]
    return Shown(plan, look(problem, plan, scales=(0.5, 1.0, 2.0), group={"age": ages}))


def stays(data: Path) -> Shown:
    found = physionet2012(data / "physionet2012", "b", label="30_day").take(np.arange(STAYS))
    net = load_network(WEIGHTS / "grud_30_day.safetensors")
    problem = Problem(
        classifier=TorchClassifier(net, output="logits", classes=net.class_names),
        cohort=found.cohort(),
        target=found.classes[0],
        margin=0.1,
        steps="all",
        limits=dict.fromkeys(LABS, "observed"),
        budgets={name: float(amount) for name, amount in zip(LABS, _typical(found, LABS), strict=True)},
    )
    plan = solve(problem, Prices())
    return Shown(plan, look(problem, plan, scales=(0.5, 1.0, 2.0)))


def _typical(found: Any, labs: Any) -> list[float]:
    """Two squared spreads of each lab."""
    rows = np.concatenate(found.values)
    return [2 * float(np.nanvar(rows[:, found.features.index(name)])) for name in labs]


class _Net(nn.Module):
    def __init__(self, mean: Any, spread: Any) -> None:
        super().__init__()
        self.mean, self.spread = nn.Buffer(torch.tensor(mean)), nn.Buffer(torch.tensor(spread))
        self.layers = nn.Sequential(nn.Linear(len(mean), 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        said: torch.Tensor = self.layers((x - self.mean) / self.spread)
        return said


def _fitted(values: Any, labels: Any, spread: Any) -> nn.Module:
    torch.manual_seed(0)
    net = _Net(values.mean(axis=0), spread).double()
    x, y = torch.tensor(values), torch.tensor(labels)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(120):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        torch.autograd.backward(loss)
        optimizer.step()
    return net.eval()


def take(browser: Browser, page_file: Path, name: str) -> None:
    """The top at desk and phone width, light and dark; one person; of the demo, the sections one by one."""
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        for kind, (width, height) in (("desktop", DESK), ("phone", PHONE)):
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(page_file.as_uri())
            _keep(page, f"report-{name}-{kind}-{scheme}")
            if kind == "desktop" and scheme == "light":
                for section in SECTIONS if name == "demo" else ():
                    _keep(page, f"report-{name}-{section}", of=section)
                page.locator("#people-table tbody button").first.click()
                _keep(page, f"report-{name}-person")
            context.close()


def _keep(page: Page, name: str, of: str | None = None) -> None:
    """What can be seen, or one section with some air around it."""
    path = PICTURES / f"{name}.png"
    if of is None:
        page.screenshot(path=path)
    else:
        box = page.locator(f"#{of}").bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
        clip: FloatRect = {
            "x": box["x"] - AIR,
            "y": box["y"],
            "width": box["width"] + 2 * AIR,
            "height": box["height"] + AIR,
        }
        page.screenshot(path=path, full_page=True, clip=clip)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{path}: is larger than {LARGEST / 1000:.0f} kB.")


MAKERS: dict[str, Callable[[Path], Shown]] = {"demo": demo, "credit": credit, "stays": stays}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=MAKERS, default=list(MAKERS))
    given = parser.parse_args()
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for name in given.only:
            shown = MAKERS[name](given.data)
            print(name, shown.plan)
            page_file = Path(folder) / f"{name}.html"
            page_file.write_text(render(shown.plan, shown.insight), encoding="utf-8")
            take(browser, page_file, name)


if __name__ == "__main__":
    main()
