"""Just enough SVG: elements, scales, axis ticks, rough text widths.

Colours and fonts are not set here but by the page's style sheet, through classes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
FONT = 12.0
"""Size of the text in charts; the style sheet sets the same."""


def element(name: str, *children: str, **attributes: object) -> str:
    """An element around children that are elements already; attribute values are escaped.

    `class_` becomes class, `text_anchor` becomes text-anchor; None leaves the attribute out.

    >>> element("g", element("circle", r=2.0), class_="a<b")
    '<g class="a&lt;b"><circle r="2"/></g>'
    """
    words = [
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    opening = f"<{name}{''.join(words)}"
    return f"{opening}>{''.join(children)}</{name}>" if children else f"{opening}/>"


def words(x: float, y: float, content: str, **attributes: object) -> str:
    """A piece of text, escaped.

    >>> words(1, 2.25, "<b>", text_anchor="end")
    '<text x="1" y="2.2" text-anchor="end">&lt;b&gt;</text>'
    """
    return element("text", html.escape(content), x=x, y=y, **attributes)


def drawing(name: str, width: float, height: float, title: str, *body: str) -> str:
    """A whole chart under a title that screen readers say; `name` must be unique on the page.

    >>> drawing("d", 20, 10, "A & B")[:71]
    '<svg class="chart" viewBox="0 0 20 10" role="img" aria-labelledby="d-ti'
    """
    heading = element("title", html.escape(title), id=f"{name}-title")
    return element(
        "svg",
        heading,
        *body,
        class_="chart",
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        role="img",
        aria_labelledby=f"{name}-title",
    )


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def path(points: Iterable[Point], *, close: bool = False, **attributes: object) -> str:
    """Straight lines through points.

    >>> path([(0, 0), (1.26, 2)])
    '<path d="M0 0L1.3 2"/>'
    """
    steps = [f"{_plain(x)} {_plain(y)}" for x, y in points]
    return element("path", d="M" + "L".join(steps) + ("Z" if close else ""), **attributes)


def stairs(edges: Sequence[float], levels: Sequence[float]) -> str:
    """Path data of a step function: `levels[i]` between `edges[i]` and `edges[i + 1]`.

    >>> stairs([0, 1, 2], [5, 7])
    'M0 5H1V7H2'
    """
    steps = [f"M{_plain(edges[0])} {_plain(levels[0])}"]
    for edge, level, following in zip(edges[1:], levels, [*levels[1:], levels[-1]], strict=True):
        steps.append(f"H{_plain(edge)}" + ("" if following == level else f"V{_plain(following)}"))
    return "".join(steps)


def _plain(value: object) -> str:
    """Numbers with one decimal at most; everything else as it is."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        shown = f"{value:.1f}".removesuffix(".0")
        return "0" if shown == "-0" else shown
    return str(value)


def text_width(content: str, size: float = FONT) -> float:
    """About how wide a text is in a proportional sans-serif font; rather too much than too little.

    >>> 30 < text_width("srtf fifo") < 70
    True
    """
    narrow = sum(content.count(letter) for letter in "fijlrt(),.:;|' ")
    return size * (0.62 * (len(content) - narrow) + 0.36 * narrow)


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] to [start, end], linearly or by the logarithm; outside values are clamped.

    >>> Scale(0, 10, 100, 200)(5), Scale(1, 100, 0, 10, log=True)(10), Scale(1, 100, 0, 10, log=True)(0)
    (150.0, 5.0, 0.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        share = ((math.log(value) if self.log else value) - low) / (high - low) if high > low else 0.0
        return self.start + share * (self.end - self.start)

    def ticks(self, choose: Callable[[float, float, int, bool], list[float]], apart: float) -> list[float]:
        """Tick values from `choose(low, high, most, log)`, as many as fit `apart` pixels apart."""
        most = max(2, int(abs(self.end - self.start) / apart))
        return choose(self.low, self.high, most, self.log)


def number_ticks(low: float, high: float, most: int, log: bool = False) -> list[float]:
    """Round numbers from low to high, `most` + 1 at most.

    >>> number_ticks(0, 95, 5)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    if high <= low:
        return [low]
    magnitude = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude * most >= high - low)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


_M, _H, _D = 60.0, 3600.0, 86_400.0
_STEPS = (
    [1.0, 2.0, 5.0, 10.0, 15.0, 30.0]
    + [_M * m for m in (1, 2, 5, 10, 15, 30)]
    + [_H * h for h in (1, 2, 3, 6, 12)]
    + [_D * d for d in (1, 2, 5, 7, 10, 14, 20, 30, 50, 100, 200, 500, 1000)]
)
_PRINTED = ((1.0, _H), (_M, _D), (_H, 100 * _D))
"""(unit that `text.duration` rounds to, until)."""
_DECADES = (
    [1.0, _M, _H, _D, 100 * _D],
    [1.0, 10.0, _M, 10 * _M, _H, 5 * _H, _D, 10 * _D, 100 * _D, 1000 * _D],
    [
        1.0,
        3.0,
        10.0,
        30.0,
        _M,
        3 * _M,
        10 * _M,
        30 * _M,
        _H,
        3 * _H,
        10 * _H,
        _D,
        3 * _D,
        10 * _D,
        30 * _D,
        100 * _D,
    ],
    [0.1, 0.2, 0.5, *(t for t in _STEPS if t not in (15.0, 15 * _M, 5 * _D, 10 * _D, 50 * _D))],
)


def time_ticks(low: float, high: float, most: int, log: bool = False) -> list[float]:
    """Seconds at which a clock or calendar looks round.

    >>> time_ticks(0, 90_000, 5)
    [0.0, 21600.0, 43200.0, 64800.0, 86400.0]
    >>> time_ticks(20, 400_000, 6, log=True)
    [60.0, 600.0, 3600.0, 18000.0, 86400.0]
    """
    if log:
        inside = [[t for t in ticks if low <= t <= high] for ticks in _DECADES]
        fitting = [ticks for ticks in inside if len(ticks) <= most]
        return max(fitting, key=len) if fitting else inside[0]
    if high <= low:
        return [low]
    # No finer than the labels, which have two units: else neighbours would read the same.
    finest = next((unit for unit, until in _PRINTED if high < until), _D)
    step = next((step for step in _STEPS if step >= finest and step * most >= high - low), None)
    if step is None:
        return [tick for tick in number_ticks(low, high, most) if low <= tick <= high]
    ticks = [step * i for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]
    return ticks or [low]
