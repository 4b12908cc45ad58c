"""Plans for tests of the report, hostile texts, and a page read back."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np

from maxflip.data.places import TablePlaces
from maxflip.plan.implied import Implied
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.plan.used import SolverUsed
from maxflip.problem.budgets import Budget
from maxflip.problem.question import Question
from maxflip.report import render

TAGS = {
    *("html", "head", "meta", "title", "style", "script", "noscript", "body", "header", "main", "section", "aside"),
    *("nav", "div", "h1", "h2", "h3", "p", "a", "b", "i", "em", "strong", "small", "span", "bdi", "code", "ul", "li"),
    *("dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "details", "summary"),
    *("label", "input", "button", "dialog", "svg", "g", "rect", "text", "line", "path", "circle", "desc"),
}
ATTRIBUTES = {
    *("lang", "dir", "charset", "http-equiv", "content", "name", "class", "id", "href", "role", "tabindex", "type"),
    *("aria-label", "aria-labelledby", "aria-describedby", "aria-hidden", "scope", "data-key", "hidden"),
    *("autocomplete", "spellcheck", "placeholder"),
    *("width", "height", "x", "y", "rx", "x1", "x2", "y1", "y2", "cx", "cy", "r", "d", "viewbox"),
}
VOID = {"meta", "rect", "line", "path", "circle", "input"}

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    '"onx="alert(1)',
    "'onx='alert(1)",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "` onerror=alert(1) `",
    "{{7*7}}",
    "{% raw %}",
    "{# comment #}",
    "${7*7}",
    "<%= 7*7 %>",
    "{{ plan.__class__.__mro__ }}",
    "\u202ereversed",
    "\u202dforced\u202c",
    "\u2067isolated",
    "<b>",
    "</b>",
    "</bdi><b>bold</b>",
    "</td></tr></table>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE x>",
    "<?php echo 1 ?>",
    "&lt;script&gt;",
    "&amp;",
    "&#60;script&#62;",
    "&",
    "<",
    ">",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "<a href='javascript:alert(1)'>x</a>",
    "<math><mi xlink:href='data:x,1'>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil>",
    "<base href=//evil>",
    "<meta charset=utf-7>",
    "<form action=//evil><button>",
    "<plaintext>",
    "<textarea>",
    "\\u003cscript\\u003e",
    "+ADw-script+AD4-",
    "%3Cscript%3E",
)


class Page(HTMLParser):
    """Checks that the tags close in order; keeps the texts and what stands in each <bdi>."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.bdi: list[str] = []
        self.words: list[str] = []
        self.others: list[str] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "bdi":
            self.bdi.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and "script" not in self.open:
            self.words.append(data)
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        if self.open and self.open[-1] == "bdi":
            self.bdi[-1] += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)

    @property
    def data(self) -> dict[str, Any]:
        """What the script is given."""
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def read(plan: Plan) -> str:
    return Page(render(plan)).text


def make(changes: Any = ((-3.3, 0.0), (-1.1, 12.0)), *, others: dict[Fate, int] | None = None, **given: Any) -> Plan:
    """Whoever has changes comes first and is flipped; the `others` follow."""
    change = np.array(changes, dtype=np.float64)
    features = given.pop("features", ("bmi", "bp"))
    change = change.reshape(-1, len(features))
    count = len(change)
    fates = [Fate.FLIPPED] * count
    for fate, number in ({Fate.LEFT_OUT: 3} if others is None else others).items():
        fates += [fate] * number
    n = len(fates)
    budgets = given.pop("budgets", {f: Budget(600.0, {f: 1.0}) for f in features})
    ids = np.array([f"P-{j}" for j in range(n)], dtype=object)
    plan = Plan(
        **{
            "features": features,
            "units": {"bmi": "kg/m²", "bp": "mmHg"},
            "all_ids": ids,
            "selected": np.arange(count),
            "moves": change,
            "before": np.where(change != 0, 31.2, np.nan),
            "places": TablePlaces.of(len(features)),
            "fates": np.array(fates, dtype=object),
            "worths": np.ones(n),
            "confidence_before": np.full(n, -0.25),
            "confidence_after": np.full(count, 0.125),
            "below_margin": 0,
            "budgets": budgets,
            "spend": dict.fromkeys(budgets, 0.0),
            "prices": None,
            "bound": None,
            "estimate": None,
            "status": Status.FEASIBLE,
            "solver": SolverUsed("Nearest"),
            "seed": 7,
            "seconds": 0.25,
            "guard": 1e-9,
            "versions": {"maxflip": "0.1.0"},
            **given,
        }
    )
    if "spend" in given:
        return plan
    spend = dict(zip(budgets, plan.ledger.spent(change, rows=plan.selected).tolist(), strict=True))
    return dataclasses.replace(plan, spend=spend)


def following() -> Plan:
    """Two people; of one a third column follows."""
    rows = {"picked": [0], "step": [0], "feature": [2]}
    follows = Implied(**{k: np.array(v) for k, v in rows.items()}, before=np.array([60.0]), after=np.array([52.0]))
    features = ("bmi", "bp", "pulse <b>")
    question = Question((), "margin", 0.1, derived={"pulse <b>": "bp - 2 * bmi"})
    return make([[-3.3, 0.0, 0.0], [-1.1, 12.0, 0.0]], features=features, implied=follows, question=question)
