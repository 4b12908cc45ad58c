"""How large reports are, and how soon one can work with them in chromium.

    python -m research.benchmarks.report

People with 20 features each, all of which change; and stays with 100 changed measurements each. Of every size the
page is rendered, opened and searched three times; times are medians, counted in the browser from the start of loading
until the table of people is there (`opens`), and from a key in the search field until the table shows what was found
(`search`). Written to docs/results/data/report.parquet.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from playwright.sync_api import Browser

from maxflip.data.places import SequencePlaces, TablePlaces
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.plan.used import SolverUsed
from maxflip.problem.budgets import Budget
from maxflip.problem.question import Question
from maxflip.report import render
from research.evidence import files
from tests.chromium import chromium

TIMES = 3
FEATURES = tuple(f"feature {i:02d}" for i in range(20))
SEARCH = """(wanted) => {
    const field = document.getElementById("people-search");
    const began = performance.now();
    field.value = wanted;
    field.dispatchEvent(new Event("input"));
    document.getElementById("people-table").getBoundingClientRect();
    return (performance.now() - began) / 1000;
}"""


def plan_for(people: int, steps: int) -> Plan:
    """As many are picked as are left out. `steps`: at which each of the features changes; 0: a table."""
    rng = np.random.default_rng(0)
    slots = np.repeat(np.arange(len(FEATURES)), max(1, steps))
    moves = rng.normal(scale=10, size=(people, len(slots)))
    step = np.tile(np.arange(max(1, steps)), (people, len(FEATURES)))
    budgets = {name: Budget(1e9, {name: 1.0}) for name in FEATURES[:10]}
    budgets["the others"] = Budget(1e9, dict.fromkeys(FEATURES[10:], 1.0))
    of_steps = SequencePlaces(slots, step, step.astype(np.float64), np.full(people, steps))
    return Plan(
        features=FEATURES,
        units=dict.fromkeys(FEATURES, "mmol/l"),
        all_ids=np.array([f"patient-{j:06d}" for j in range(2 * people)], dtype=object),
        selected=np.arange(people),
        moves=moves,
        before=rng.normal(100, 20, size=moves.shape),
        fates=np.array([Fate.FLIPPED] * people + [Fate.LEFT_OUT] * people, dtype=object),
        worths=np.ones(2 * people),
        confidence_before=rng.uniform(-1, 0.1, 2 * people),
        confidence_after=np.full(people, 0.1 + 1e-9),
        below_margin=0,
        budgets=budgets,
        spend=dict.fromkeys(budgets, 9e8),
        prices=dict.fromkeys(budgets, 1e-7),
        bound=None,
        estimate=people + 1.5,
        status=Status.OPEN,
        solver=SolverUsed("Prices"),
        seed=0,
        seconds=1.0,
        guard=1e-9,
        places=of_steps if steps else TablePlaces(slots),
        question=Question(("stable",), "margin", 0.1),
    )


def measured(browser: Browser, people: int, steps: int) -> dict[str, Any]:
    plan = plan_for(people, steps)
    rendering, opening, searching = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "report.html"
        for _ in range(TIMES):
            began = time.perf_counter()
            page_file.write_text(render(plan), encoding="utf-8")
            rendering.append(time.perf_counter() - began)
            context = browser.new_context(viewport={"width": 1200, "height": 900})
            page = context.new_page()
            page.goto(page_file.as_uri())
            page.locator("#people-tools").wait_for(state="visible")
            opening.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"))
            searching.append(page.evaluate(SEARCH, "9"))
            context.close()
        size = page_file.stat().st_size
    return {
        "people": people,
        "kind": "sequences" if steps else "table",
        "changes_each": len(plan.moves[0]),
        "megabytes": size / 1e6,
        "render_seconds": median(rendering),
        "open_seconds": median(opening),
        "search_seconds": median(searching),
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    began = time.perf_counter()
    with chromium() as browser:
        rows = [measured(browser, *size) for size in ((100, 0), (1_000, 0), (10_000, 0), (1_000, 5), (10_000, 5))]
        version = browser.version
    for row in rows:
        print(row)
    made = files.made_here("python -m research.benchmarks.report", time.perf_counter() - began, ("playwright", "numpy"))
    made = files.Made(**{**vars(made), "versions": {**made.versions, "chromium": version}})
    print(files.write("report", rows, made))


if __name__ == "__main__":
    main()
