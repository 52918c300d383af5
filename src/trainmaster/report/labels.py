"""Where to put labels so that they don't cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .svg import FONT, Point, text_width

Line = tuple[Point, Point]


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

    def crossed(self, line: Line | None) -> bool:
        """Whether a line (None: there is none) enters the box.

        >>> Box(0, 0, 10, 10).crossed(((-5, 5), (20, 6))), Box(0, 0, 10, 10).crossed(((-5, 0), (0, 15)))
        (True, False)
        """
        if line is None:
            return False
        enter, leave = 0.0, 1.0  # of the line's length: clipped by one side after the other
        for start, end, low, size in zip(*line, (self.x, self.y), (self.width, self.height), strict=True):
            step = end - start
            if not step:
                if not low < start < low + size:
                    return False
                continue
            sides = sorted(((low - start) / step, (low + size - start) / step))
            enter, leave = max(enter, sides[0]), min(leave, sides[1])
        return enter < leave

    def outside(self, frame: Box) -> float:
        """Area that sticks out of the frame."""
        return self.width * self.height - self.overlap(frame)


OUTSIDE = 4.0
"""What a pixel outside the frame costs; one that covers something else costs 1."""
CROSSING = 200.0
"""What a leader line through a name or a point costs."""
LATER = 1.5
"""What each place further down a list of places costs."""
RINGS, APART = 4, 18.0
"""A name is tried on so many rings around its point, so many pixels apart."""
CROWD, REACH = 3, 3.5
"""So many points, each within so many radii of the next, have their names in a column beside them."""
LINE_HEIGHT = FONT + 3
GAP = 3.0
"""Pixels between a name and its leader line, or the next name."""


def around_points(points: Sequence[Point], names: Sequence[str], frame: Box, radius: float) -> list[Box]:
    """A box for each name near its point, clear of points, other names, their lines and the frame's edge.

    Where points crowd, their names stand in a column beside them; each other name goes to
    the best place around its point, further away where the surroundings are full. What is
    not next to its point wants a leader line.

    >>> a, b = around_points([(50, 50), (50, 50)], ["fifo", "sjf"], Box(0, 0, 200, 100), radius=4)
    >>> a.overlap(b)
    0.0
    """
    dots = [Box(x - radius, y - radius, 2 * radius, 2 * radius) for x, y in points]
    boxes: dict[int, Box] = {}

    def flaws(placed: dict[int, Box]) -> float:
        """What more boxes would cover, cross and stick out of."""
        obstacles = [*dots, *(Box(b.x - GAP, b.y, b.width + 2 * GAP, b.height) for b in boxes.values())]
        lines = [line for i, box in boxes.items() if (line := leader(points[i], box, radius))]
        total = 0.0
        for index, box in placed.items():
            line = leader(points[index], box, radius)
            crossed = sum(other.crossed(line) for at, other in enumerate(obstacles) if at not in placed)
            crossed += sum(map(box.crossed, lines))
            covered = sum(map(box.overlap, obstacles))
            total += OUTSIDE * box.outside(frame) + covered + CROSSING * crossed
        return total

    def place(options: Sequence[dict[int, Box]]) -> None:
        costs = [flaws(option) + LATER * rank for rank, option in enumerate(options)]
        boxes.update(options[costs.index(min(costs))])

    crowds = _crowds(points, REACH * radius)
    for crowd in crowds:
        if len(crowd) >= CROWD:
            place(_columns(crowd, points, names, radius))
    for index in (index for crowd in crowds if len(crowd) < CROWD for index in crowd):
        place([{index: option} for option in _options(points[index], names[index], radius)])
    return [boxes[index] for index in range(len(points))]


def _crowds(points: Sequence[Point], reach: float) -> list[list[int]]:
    """Points within reach of each other, directly or by way of others, together.

    >>> _crowds([(0, 0), (50, 0), (9, 0), (18, 5)], 10)
    [[0, 2, 3], [1]]
    """
    crowds: list[list[int]] = []
    for index, (x, y) in enumerate(points):
        near = [
            crowd
            for crowd in crowds
            if any(abs(points[i][0] - x) < reach and abs(points[i][1] - y) < reach for i in crowd)
        ]
        joined = sorted([index, *(i for crowd in near for i in crowd)])
        crowds = sorted([*(crowd for crowd in crowds if crowd not in near), joined])
    return crowds


def _columns(
    crowd: Sequence[int], points: Sequence[Point], names: Sequence[str], radius: float
) -> list[dict[int, Box]]:
    """Columns for the names of a crowd: right or left of it, level with it, above or below.

    The point furthest from the column has the uppermost name, so that leader lines don't cross.
    """
    xs, ys = [points[i][0] for i in crowd], [points[i][1] for i in crowd]
    height = LINE_HEIGHT * len(crowd)
    columns = []
    for distance in (radius + 22, radius + 44, radius + 88):
        for top in (sum(ys) / len(ys) - height / 2, max(ys) + radius - height, min(ys) - radius):
            for side in (1, -1):
                order = sorted(crowd, key=lambda i: (side * points[i][0], points[i][1]))
                column = {}
                for row, index in enumerate(order):
                    width = text_width(names[index])
                    x = max(xs) + distance if side > 0 else min(xs) - distance - width
                    column[index] = Box(x, top + row * LINE_HEIGHT, width, FONT + 2)
                columns.append(column)
    return columns


def leader(point: Point, box: Box, radius: float) -> Line | None:
    """The line from a point almost to its name; None where the name is close enough.

    >>> leader((0, 0), Box(33, -5, 40, 10), 4), leader((0, 0), Box(8, -5, 40, 10), 4)
    (((0, 0), (30.0, 0)), None)
    """
    x, y = point
    nearest = min(max(x, box.x - GAP), box.x + box.width + GAP), min(max(y, box.y), box.y + box.height)
    return (point, nearest) if abs(nearest[0] - x) + abs(nearest[1] - y) > 3 * radius else None


def _options(point: Point, name: str, radius: float) -> list[Box]:
    """Places on rings around the point, the best first: beside, above and below it, off its corners."""
    x, y = point
    width, height = text_width(name), FONT + 2
    options = []
    for ring in range(RINGS):
        distance = radius + 4 + ring * APART
        right, left, centre = x + distance, x - distance - width, x - width / 2
        above, below, level = y - distance - height, y + distance, y - height / 2
        corners = [(right, level), (left, level), (centre, above), (centre, below)]
        corners += [(right, above), (right, below), (left, above), (left, below)]
        corners += [(start, level) for start in (x - 4, x + 4 - width) for level in (above, below)]
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
