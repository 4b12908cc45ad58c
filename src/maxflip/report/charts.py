"""Charts as inline SVG, one function per kind. Colours come from style.css by class, so dark mode and print apply.

Charts with axes are WIDTH units wide, so that their text is readable on a phone. Markup.format escapes user texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip._util.types import Floats
from maxflip.report.numbers import number, percent

WIDTH = 400
LETTER = 13  # height of a line of text, in SVG units
MOST_DOTS = 24  # a line with more points is drawn without dots
_LEFT, _RIGHT, _BOTTOM = 46.0, WIDTH - 14.0, 40.0


@dataclass(frozen=True)
class Chart:
    """A chart, and its numbers as a table."""

    picture: Markup
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Line:
    """`look`: a class of style.css. Points that are not finite are left out, and the line breaks there."""

    name: str
    look: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Quantiles:
    """5th, 25th, 50th, 75th and 95th percentile."""

    p5: float
    p25: float
    p50: float
    p75: float
    p95: float

    @classmethod
    def of(cls, values: Floats) -> Quantiles:
        return cls(*(float(q) for q in np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95))))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """At most `most` round numbers in [low, high].

    >>> ticks(0, 100), ticks(-0.13, 0.94), ticks(0, 7), ticks(3, 3)
    ([0.0, 25.0, 50.0, 75.0, 100.0], [0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 2.0, 4.0, 6.0], [3.0])
    """
    if not 0 < high - low < math.inf:
        return [float(low)]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (power * m for m in (1, 2, 2.5, 5, 10, 20)):
        first = math.ceil(low / step - 1e-9)
        marks = [float(round(k * step, 12)) for k in range(first, math.floor(high / step + 1e-9) + 1)]
        if len(marks) <= most:
            return marks
    return [float(low)]


def bar(part: float, all_of_it: float) -> Markup:
    """A horizontal bar filled to part / all_of_it. Hidden from screen readers: the cell states the numbers."""
    share = min(100.0, 100 * part / all_of_it) if 0 < all_of_it < math.inf else 0.0
    return Markup(
        '<svg class="bar" aria-hidden="true"><rect class="track" width="100%" height="100%" rx="3"/>'
        '<rect class="fill" width="{}%" height="100%" rx="3"/></svg>'
    ).format(f"{share:.1f}")


def stacked(key: str, title: str, parts: Sequence[tuple[str, str, int]]) -> Markup:
    """One full-width stacked bar. parts: (class of style.css, name, count)."""
    whole = max(1, sum(count for _, _, count in parts))
    drawn, start = [], 0
    for look, _, count in parts:
        if count:
            x, width = 100 * start / whole, 100 * count / whole
            drawn.append(
                Markup('<rect class="{}" x="{}%" width="{}%" height="100%"/>').format(look, f"{x:.2f}", f"{width:.2f}")
            )
            if width > 13:
                text = Markup('<text class="{}" x="{}%" y="50%">{}</text>')
                drawn.append(text.format(look, f"{x + width / 2:.2f}", f"{count:,}"))
        start += count
    described = ", ".join(f"{name} {count:,} ({percent(count, whole)})" for _, name, count in parts)
    return _svg(key, "stack", title, described, Markup("").join(drawn), "")


def strip(quantiles: Quantiles, reach: float) -> Markup:
    """A small box plot from -reach to reach, with 0 in the middle. Hidden from screen readers."""
    box = _box(quantiles, lambda v: 50 + 50 * max(-1.0, min(1.0, v / reach)) if reach else 50.0, 50, 32, "%")
    return Markup(
        '<svg class="strip" aria-hidden="true"><line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>{}</svg>'
    ).format(box)


def box_plots(key: str, title: str, rows: Sequence[tuple[str, str, Quantiles]], x_name: str) -> Chart:
    """Box plots below each other on a common axis from 0. rows: (class of style.css, name, quantiles)."""
    high = max((s.p95 for _, _, s in rows), default=1.0) or 1.0
    height = 46 * len(rows) + _BOTTOM
    scale = _Scale(0, high * 1.03, 8.0, _RIGHT)
    drawn = [_x_axis(ticks(0, high * 1.03), scale, 0, height - _BOTTOM, x_name)]
    for i, (look, name, quantiles) in enumerate(rows):
        top = 46 * i
        drawn.append(Markup('<text class="named" x="8" y="{}">{}</text>').format(f"{top + 14:.0f}", name))
        drawn.append(Markup('<g class="{}">{}</g>').format(look, _box(quantiles, scale, top + 28, 14)))
    heads = ("", "5%", "25%", "half", "75%", "95%")
    table = [(name, *(number(v, 3) for v in (s.p5, s.p25, s.p50, s.p75, s.p95))) for _, name, s in rows]
    described = ". ".join(f"{name}: half below {number(s.p50, 3)}, 95% below {number(s.p95, 3)}" for _, name, s in rows)
    return Chart(_svg(key, "chart", title, described, Markup("").join(drawn), _box_of(height)), heads, table)


def lines(
    key: str,
    title: str,
    described: str,
    series: Sequence[Line],
    *,
    x_name: str,
    mark: tuple[float, float, str] | None = None,
    x_marks: Sequence[float] | None = None,
    from_zero: bool = True,
) -> Markup:
    """Lines over a common axis; `mark`: (x, y, name) of one labelled point."""
    top = 10.0 + LETTER * 1.35 * len(series)
    height = top + 190
    points = [(x, y) for line in series for x, y in zip(line.x, line.y, strict=True) if math.isfinite(y)]
    points += [mark[:2]] if mark else []
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    low, high = (min(0.0, *ys, 0.0) if from_zero else min(ys)), max(ys)
    high = high + 0.06 * (high - low or abs(high) or 1.0)
    scale_x = _Scale(min(xs), max(xs), _LEFT, _RIGHT)
    scale_y = _Scale(low, high, height - _BOTTOM, top)
    drawn = [_y_axis(ticks(low, high), scale_y)]
    drawn.append(_x_axis(list(x_marks or ticks(min(xs), max(xs))), scale_x, None, height - _BOTTOM, x_name))
    for i, line in enumerate(series):
        y = 12 + LETTER * 1.35 * i
        drawn.append(
            Markup('<path class="line {}" d="M{} {}h18"/><text x="{}" y="{}">{}</text>').format(
                line.look, f"{_LEFT:.0f}", f"{y - 4:.1f}", f"{_LEFT + 24:.0f}", f"{y:.1f}", line.name
            )
        )
    drawn += [_path(line, scale_x, scale_y) for line in reversed(series)]  # the first one on top
    if mark:
        x, y = scale_x(mark[0]), scale_y(mark[1])
        side = "end" if x > WIDTH / 2 else "start"
        drawn.append(
            Markup('<circle class="mark" cx="{}" cy="{}" r="6"/><text class="named {}" x="{}" y="{}">{}</text>').format(
                f"{x:.1f}", f"{y:.1f}", side, f"{x + (-2 if side == 'end' else 2):.1f}", f"{y + 24:.1f}", mark[2]
            )
        )
    return _svg(key, "chart", title, described, Markup("").join(drawn), _box_of(height))


def mirrored(
    key: str,
    title: str,
    described: str,
    edges: Floats,
    above: tuple[str, str, Floats],
    below: tuple[str, str, Floats],
    *,
    x_name: str,
    at: tuple[float, str] | None = None,
) -> Markup:
    """Two histograms over the same bins, one upward, one downward: (class of style.css, name, share of each bin)."""
    height, half = 236.0, 72.0
    middle = 24 + half
    most = max(above[2].max(initial=0.0), below[2].max(initial=0.0)) or 1.0
    scale = _Scale(float(edges[0]), float(edges[-1]), 12.0, _RIGHT)
    drawn = [_x_axis(ticks(float(edges[0]), float(edges[-1])), scale, None, height - _BOTTOM, x_name)]
    for sign, (look, name, counts) in ((-1, above), (1, below)):
        y = 14 if sign < 0 else height - _BOTTOM - 6
        drawn.append(Markup('<text class="named" x="12" y="{}">{}</text>').format(f"{y:.0f}", name))
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
            tall = half * float(count) / most
            if tall:
                drawn.append(
                    Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                        look,
                        f"{scale(left) + 0.6:.1f}",
                        f"{middle - tall if sign < 0 else middle:.1f}",
                        f"{max(0.6, scale(right) - scale(left) - 1.2):.1f}",
                        f"{tall:.1f}",
                    )
                )
    drawn.append(Markup('<path class="axis" d="M12 {}H{}"/>').format(f"{middle:.1f}", f"{_RIGHT:.0f}"))
    if at is not None and edges[0] <= at[0] <= edges[-1]:
        x = scale(at[0])
        side = "end" if x > WIDTH / 2 else "start"
        drawn.append(
            Markup('<path class="asked" d="M{} 20V{}"/><text class="{}" x="{}" y="14">{}</text>').format(
                f"{x:.1f}", f"{height - _BOTTOM:.1f}", side, f"{x:.1f}", at[1]
            )
        )
    return _svg(key, "chart", title, described, Markup("").join(drawn), _box_of(height))


class _Scale:
    """Linear map from values to SVG coordinates."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self.low, self.first = low, first
        self.slope = (last - first) / (high - low) if high > low else 0.0

    def __call__(self, value: float) -> float:
        return self.first + self.slope * (float(value) - self.low)


def _box(quantiles: Quantiles, place: Callable[[float], float], middle: float, tall: float, unit: str = "") -> Markup:
    p5, p25, p50, p75, p95 = (
        place(v) for v in (quantiles.p5, quantiles.p25, quantiles.p50, quantiles.p75, quantiles.p95)
    )

    def at(value: float) -> str:
        return f"{value:.2f}{unit}"

    return Markup(
        '<line class="reach" x1="{}" x2="{}" y1="{}" y2="{}"/><rect class="box" x="{}" y="{}" width="{}" height="{}"/>'
        '<line class="half" x1="{}" x2="{}" y1="{}" y2="{}"/>'
    ).format(
        *(at(p5), at(p95), at(middle), at(middle)),
        *(at(p25), at(middle - tall / 2), at(p75 - p25), at(tall)),
        *(at(p50), at(p50), at(middle - tall / 2), at(middle + tall / 2)),
    )


def _path(line: Line, scale_x: _Scale, scale_y: _Scale) -> Markup:
    steps, is_open, dots = [], False, []
    for x, y in zip(line.x, line.y, strict=True):
        if not math.isfinite(y):
            is_open = False
            continue
        place = f"{scale_x(x):.1f} {scale_y(y):.1f}"
        steps.append(f"{'L' if is_open else 'M'}{place}")
        dots.append(place.split())
        is_open = True
    circles = [Markup('<circle cx="{}" cy="{}" r="3"/>').format(*dot) for dot in dots] if len(dots) <= MOST_DOTS else []
    return Markup('<g class="{}"><path class="line {}" d="{}"/>{}</g>').format(
        line.look, line.look, "".join(steps), Markup("").join(circles)
    )


def _x_axis(marks: Sequence[float], scale: _Scale, grid_from: float | None, bottom: float, name: str) -> Markup:
    texts = []
    for mark in marks:
        x = f"{scale(mark):.1f}"
        if grid_from is not None:
            texts.append(Markup('<path class="grid" d="M{} {}V{}"/>').format(x, f"{grid_from:.1f}", f"{bottom:.1f}"))
        texts.append(
            Markup('<text class="middle" x="{}" y="{}">{}</text>').format(x, f"{bottom + 16:.1f}", number(mark))
        )
    texts.append(
        Markup('<text class="end" x="{}" y="{}">{}</text>').format(f"{_RIGHT:.0f}", f"{bottom + 34:.1f}", name)
    )
    return Markup("").join(texts)


def _y_axis(marks: Sequence[float], scale: _Scale) -> Markup:
    return Markup("").join(
        Markup('<path class="grid" d="M{} {}H{}"/><text class="end" x="{}" y="{}">{}</text>').format(
            f"{_LEFT:.0f}", f"{scale(m):.1f}", f"{_RIGHT:.0f}", f"{_LEFT - 7:.0f}", f"{scale(m) + 4:.1f}", number(m, 3)
        )
        for m in marks
    )


def _box_of(height: float) -> str:
    return f"0 0 {WIDTH} {height:.0f}"


def _svg(key: str, look: str, title: str, described: str, inside: Markup, view_box: str) -> Markup:
    """An SVG element with a title and a description for screen readers."""
    size = Markup(' viewBox="{}"').format(view_box) if view_box else Markup("")
    return Markup(
        '<svg class="{}"{} role="img" aria-labelledby="{}-title" aria-describedby="{}-desc">'
        '<title id="{}-title">{}</title><desc id="{}-desc">{}</desc>{}</svg>'
    ).format(look, size, key, key, key, title, key, described, inside)
