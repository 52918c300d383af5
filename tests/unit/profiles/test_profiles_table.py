"""What a speed table says at, between and beyond its listed placements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.profiles import SpeedTable

TABLE = SpeedTable({4: {1: 1.0, 4: 0.3, 2: 0.6}, 8: {1: 1.0, 2: 0.5}, 2: {1: 1.0, 2: 0.8}})


@pytest.mark.parametrize(
    ("gpus", "nodes", "speed"),
    [
        pytest.param(4, 2, 0.6, id="listed"),
        pytest.param(4, 3, 0.3, id="nodes between: the next higher"),
        pytest.param(8, 3, 0.5, id="nodes beyond: the last"),
        pytest.param(3, 2, 0.7, id="size between: the middle of 0.8 and 0.6"),
        pytest.param(7, 2, 0.525, id="size between: three quarters of the way from 0.6 to 0.5"),
        pytest.param(6, 4, 0.4, id="size between, each neighbour at its own nodes: 0.3 and 0.5"),
        pytest.param(1, 1, 1.0, id="size below: the smallest"),
        pytest.param(0.5, 1, 1.0, id="a fraction of a GPU"),
        pytest.param(1, 2, 0.8, id="size below, spread"),
        pytest.param(16, 2, 1.0, id="size beyond on full nodes: 8 on 1"),
        pytest.param(16, 3, 0.5, id="size beyond, one node too many: 8 on 2"),
        pytest.param(12, 2, 1.0, id="size beyond that fills one and a half nodes"),
        pytest.param(8.5, 2, 1.0, id="just beyond"),
        pytest.param(17, 3, 1.0, id="three parts"),
        pytest.param(64, 1, 1.0, id="size beyond on one huge node"),
    ],
)
def test_known_answers(gpus: float, nodes: int, speed: float) -> None:
    assert TABLE.at(gpus, nodes) == pytest.approx(speed, rel=1e-12)


def test_fewest_listed_nodes_stand_for_fewer() -> None:
    table = SpeedTable({16: {2: 5.0, 4: 3.0}})
    assert table.at(16, 1) == 5.0
    assert table.at(32, 4) == 5.0
    assert table.at(32, 5) == 3.0


def test_only_the_named_sizes_count() -> None:
    assert TABLE.at(4, 2, (2, 8)) == pytest.approx(0.8 + (0.5 - 0.8) / 3)
    assert TABLE.at(8, 2, (2,)) == 1.0


def test_beside_a_size_that_does_not_run() -> None:
    table = SpeedTable({1: {1: 2.0}, 4: {1: 0.0}, 8: {1: 3.0}})
    assert table.at(1, 1) == 2.0
    assert table.at(2, 1) == table.at(4, 1) == table.at(6, 1) == 0.0
    assert table.at(8, 1) == 3.0


@pytest.mark.parametrize("speeds", [{}, {4: {}}, {4: {1: 1.0}, 8: {}}])
def test_an_empty_table_is_refused(speeds: dict[int, dict[int, float]]) -> None:
    with pytest.raises(ValueError, match="at least one size"):
        SpeedTable(speeds)


positive = st.floats(1e-6, 1e6)
tables = st.dictionaries(
    st.integers(1, 40), st.dictionaries(st.integers(1, 40), positive, min_size=1, max_size=4), min_size=1
).map(SpeedTable)


@given(table=tables, gpus=st.floats(0.1, 100), nodes=st.integers(1, 100))
def test_no_answer_leaves_the_listed_range(table: SpeedTable, gpus: float, nodes: int) -> None:
    listed = [speed for by_nodes in table.speeds.values() for speed in by_nodes.values()]
    assert min(listed) * (1 - 1e-9) <= table.at(gpus, nodes) <= max(listed) * (1 + 1e-9)


@given(table=tables)
def test_listed_placements_are_exact(table: SpeedTable) -> None:
    for gpus, by_nodes in table.speeds.items():
        for nodes, speed in by_nodes.items():
            assert table.at(gpus, nodes) == speed


@given(table=tables, gpus=st.integers(1, 100), nodes=st.integers(1, 50))
def test_spread_never_speeds_up_where_no_table_says_so(table: SpeedTable, gpus: int, nodes: int) -> None:
    falling = SpeedTable(
        {
            size: dict(zip(sorted(by_nodes), sorted(by_nodes.values(), reverse=True), strict=True))
            for size, by_nodes in table.speeds.items()
        }
    )
    assert falling.at(gpus, nodes + 1) <= falling.at(gpus, nodes) * (1 + 1e-9)
