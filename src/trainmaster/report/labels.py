"""Where to put labels so that they don't cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .svg import FONT, Point, text_width


@dataclass(frozen=True)
class Box:
    """A rectangle; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Area that both cover."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        down = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(0.0, across) * max(0.0, down)

    def outside(self, frame: Box) -> float:
        """Area that sticks out of the frame."""
        return self.width * self.height - self.overlap(frame)


def around_points(points: Sequence[Point], names: Sequence[str], frame: Box, radius: float) -> list[Box]:
    """A box for each name near its point, clear of points, of other names and of the frame's edge.

    Names are placed greedily, the most crowded last; where the surroundings are full, a
    box moves further away (and wants a leader line).

    >>> a, b = around_points([(50, 50), (50, 50)], ["fifo", "sjf"], Box(0, 0, 200, 100), radius=4)
    >>> a.overlap(b)
    0.0
    """
    taken = [Box(x - radius, y - radius, 2 * radius, 2 * radius) for x, y in points]
    boxes: dict[int, Box] = {}
    for index in sorted(range(len(points)), key=lambda i: _neighbours(points, i)):
        options = _options(points[index], names[index], radius)
        costs = [
            4 * option.outside(frame) + sum(option.overlap(other) for other in taken) + 1.5 * order
            for order, option in enumerate(options)
        ]
        boxes[index] = options[costs.index(min(costs))]
        taken.append(boxes[index])
    return [boxes[index] for index in range(len(points))]


def _neighbours(points: Sequence[Point], index: int) -> int:
    x, y = points[index]
    return sum(abs(x - other_x) < 60 and abs(y - other_y) < 20 for other_x, other_y in points)


def _options(point: Point, name: str, radius: float) -> list[Box]:
    x, y = point
    width, height = text_width(name), FONT + 2
    options = []
    for distance in (radius + 4, radius + 22, radius + 40, radius + 58):
        right, left, centre = x + distance, x - distance - width, x - width / 2
        above, below, level = y - distance - height, y + distance, y - height / 2
        corners = [(right, level), (left, level), (centre, above), (centre, below)]
        corners += [(right, above), (right, below), (left, above), (left, below)]
        options += [Box(*corner, width, height) for corner in corners]
    return options


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, at least `gap` apart where [low, high] has the room, in the same order.

    >>> spread([10, 11, 40], 10, 0, 100)
    [5.5, 15.5, 40.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while len(groups) > 1 and _first(groups[-1], wanted, gap, low, high) < (
            _first(groups[-2], wanted, gap, low, high) + gap * len(groups[-2])
        ):
            last = groups.pop()
            groups[-1] += last
    positions = dict.fromkeys(order, 0.0)
    for group in groups:
        first = _first(group, wanted, gap, low, high)
        positions.update({index: first + gap * rank for rank, index in enumerate(group)})
    return [positions[index] for index in range(len(wanted))]


def _first(group: Sequence[int], wanted: Sequence[float], gap: float, low: float, high: float) -> float:
    """Where the first of a stack goes so that the stack is centred on what its members want."""
    length = gap * (len(group) - 1)
    centre = sum(wanted[index] for index in group) / len(group)
    return max(low, min(centre - length / 2, high - length))
