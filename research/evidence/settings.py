"""Numbers that pages may have outside marks: what was asked, set or published by others, never what was measured here.

By page, phrases of it with the number in its surroundings, so that a number elsewhere is not let through with them.
"""

from __future__ import annotations

SETTINGS: dict[str, tuple[str, ...]] = {
    "README.md": ("Python 3.11 or newer", "by a margin of 0.1, on average", "± are 95 % intervals"),
    "docs/experiments.md": (
        "The margin is 0.1,",
        "40, 60 and 80 % of what an unlimited KL consumes",
        "10, 20 and 40 % of what the cheapest flips consume",
        "of 0, 0.01, 0.1 and 1: the most flips",
        "a smaller step of its probabilities, 0.0001,",
        "one smaller start of lambda (0.1)",
        "with 95 % intervals",
    ),
    "docs/hold.md": ("intervals (95 %, Student's)", "*90 %, 80 %, 50 %*: flips that still pass"),
    "docs/networks.md": ("header (at most 2 MB)",),
    "docs/prices.md": (
        "that is 2 % in the worst case",  # 19 of 1,000
        "(cosine below 0.98)",
        "falling from 0.3 to 0.01 of a worth",
        "(by more than 3 % of all)",
        "| 3 % of ",
        "| 0.2 % |",
        "| 0.1 % |",
        "and 5 % less than their own flip",
    ),
    "docs/results.md": (
        "are 40, 60 and 80 % of what an unlimited KL consumes",
        "bars are 95 % intervals over draws",
        "± are 95 % intervals, Student's",
        "bars 95 % intervals over them",
    ),
    "docs/results/flips.md": (
        "samples and margin (0.1)",
        "comes within 1 % of the best known",
        "is within 0.5 % of the best known",
        "a high margin (0.5, 0.9, 0.9 and 0.8)",
        "whom 100 restarts flip, at most 1 % are",
    ),
    "docs/results/hold.md": (
        "Intervals (95 %, Student's)",
        "a margin of 0.3 is not a promise of 0.3",
        "nearest flip (margin 0.1) draws | 25 % of each | 40 % of each |",
        "the margin give or take 0.05",
        "tried at margin 0.1",
    ),
    "docs/results/paper_solvers.md": (
        "Budgets of 40, 60 and 80 % of what an unlimited KL draws",
        "at 60 %), so",
        "with 10 % budgets in the first table",
        "one squared budget of 0.1 n per feature",
        "in blocks of 32 MiB; up to 1 GiB of it",
        "budgets of 60 % of what unlimited KL draws",
        "alpha = beta = 0.05",
        "a = 0.1, K = n",
        "a step of 0.05 overshoots",
        '"no default", margin 0.1',
        "a budget of 10, 40, 60 or 80 % of what unlimited",
        "The 10 % are ours",
        "starting multipliers of 0.1 too",
    ),
    "docs/results/prices.md": (
        '"40 %" and "10 %" give each budget',
        '"20 %, even" gives 20 % of all totals',
        "so the 95 % intervals",
        "Margin 0.1.",
        "less than 1.2 of their worth",
    ),
    "docs/results/sequences.md": ("margin 0.1, no limits",),
    "docs/results/training.md": (
        "(0.98 per step)",
        "Rate 0.003, weight decay 0.3, batches of 64",
        "Published (Che et al. 2018): 0.8424 ± 0.012.",
        "missed the bar of 0.84",
        "is uncertain by about 0.02",  # from the number of deaths
        "15 % of the others are the inner part",
        "Rate 0.003, batches of 128",
        "with dropout 0.2:",
        "dropout 0.1, rate 0.006",
        "(15 % of it the inner part)",
        "Rate 0.002, weight decay 0.1, dropout 0.5",
        "rate 0.003, dropout 0.3:",
    ),
}
