"""Jobs on nodes: rectangles, hours, and the data for the browser."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.report import lane_data, lane_drawing, lanes
from trainmaster.report.dates import Calendar
from trainmaster.report.series import LaneNode, Lanes, Segment


def segment(
    devices: int, start: float, end: float, job: str = "j", gpus: float = 1, node: int = 0, kind: str = "run"
) -> Segment:
    return Segment(node, devices, start, end, job, f"t-{job}", gpus, kind)


def over(segments: list[Segment], nodes: int = 1, hours: int = 4) -> Lanes:
    return Lanes(0.0, hours * 3600.0, tuple(LaneNode(f"n{i}", 8) for i in range(nodes)), tuple(segments))


def test_a_bar_for_each_run_of_devices() -> None:
    bars = lanes.bars_of(over([segment(0b11011001, 0, 10, gpus=5)]))
    assert [(bar.first, bar.span) for bar in bars] == [(0, 1), (3, 2), (6, 2)]


@given(st.integers(1, 2**16 - 1))
def test_bars_cover_exactly_the_devices(mask: int) -> None:
    covered = 0
    for bar in lanes.bars_of(over([segment(mask, 0, 10, gpus=mask.bit_count())])):
        for device in range(int(bar.first), int(bar.first + bar.span)):
            assert not covered >> device & 1
            covered |= 1 << device
    assert covered == mask


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=20))
def test_fractions_of_a_gpu_lie_side_by_side(spans: list[tuple[int, int]]) -> None:
    """Four quarters fit a GPU; whatever fits must not overlap."""
    chosen: list[Segment] = []
    for index, (start, length) in enumerate(spans):
        candidate = segment(0b100, start, start + length, job=f"j{index:02}", gpus=0.25)
        together = [
            other for other in chosen if other.start_s < candidate.end_s and other.end_s > candidate.start_s
        ]
        if len(together) < 4:
            chosen.append(candidate)
    peak = max((sum(o.start_s <= s.start_s < o.end_s for o in chosen) for s in chosen), default=0)
    bars = lanes.bars_of(over(chosen))
    assert len(bars) == len(chosen)
    for bar in bars:
        assert bar.first >= 2 and bar.first + bar.span <= 3 + 1e-9 and bar.span == 0.25
    if peak <= 4:
        for one, two in combinations(bars, 2):
            apart_in_time = one.end_s <= two.start_s or two.end_s <= one.start_s
            assert apart_in_time or abs(one.first - two.first) >= 0.25 - 1e-9


def test_hours() -> None:
    found = over(
        [segment(1, 3600 * 2 + i, 3600 * 2 + i + 1, job=f"j{i}") for i in range(9)] + [segment(2, 0, 1)]
    )
    assert lanes.hours_of(found) == 4
    assert lanes.busiest_hour(found, lanes.bars_of(found)) == 2
    assert lanes.busiest_hour(found, []) == 0


def test_too_many_bars_keep_the_hours_around_the_busiest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_BARS", 60)
    segments = [
        segment(1, 3600 * h + 10 * i, 3600 * h + 10 * i + 5, job=f"{h}-{i}")
        for h in range(8)
        for i in range(10)
    ]
    segments.append(segment(2, 3600 * 5 + 1, 3600 * 5 + 2, job="busiest"))
    (picture,) = lanes.pictures({"fifo": over(segments, hours=8)})
    assert (picture.lanes.from_s, picture.lanes.to_s) == (3600 * 3, 3600 * 8)
    assert len(picture.bars) == 51
    whole = over(segments[:50], hours=8)
    assert lanes.pictures({"fifo": whole})[0].lanes is whole


def test_too_many_bars_within_an_hour_keep_the_first_pages_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_BARS", 70)
    segments = [segment(1, 10, 20, job=f"{n}", node=n) for n in range(100)]
    (picture,) = lanes.pictures({"fifo": over(segments, nodes=100)})
    assert len(picture.lanes.nodes) == 68 == len(picture.bars)


def test_the_payload_says_what_the_script_reads() -> None:
    found = lanes.pictures(
        {
            "fifo": over(
                [
                    segment(0b110, 5, 3605, job="</script>", gpus=2),
                    segment(1, 60, 90, job="b", kind="overhead"),
                ]
            )
        }
    )
    palette = lanes.palette_of(found)
    text = lane_data.payload(found, palette, 0, Calendar(1e9))
    assert "<" not in text and "&" not in text
    document = json.loads(text)
    assert document["policies"][0]["bars"] == [0, 1, 2, 5, 3600, 0, 0, 0, 0, 1, 60, 30, 1, 1]
    assert document["jobs"] == [["</script>", 0, 2, 2], ["b", 1, 1, 1]]
    assert document["tenants"] == [["t-</script>", 0], ["t-b", 1]]
    assert document["start"] == 1e9
    assert document["policies"][0]["nodes"] == [["n0", 8]] and document["policies"][0]["hours"] == 4


def test_tenants_with_most_gpu_time_have_their_own_colours() -> None:
    found = lanes.pictures({"fifo": over([segment(1, 0, 100 + i, job=f"{i:02}") for i in range(10)])})
    palette = lanes.palette_of(found)
    assert palette.tenants == tuple(f"t-{i:02}" for i in range(9, 2, -1))
    assert palette.tenant("t-09") == 0 and palette.tenant("t-00") == lanes.TENANT_COLOURS


def test_occupancy() -> None:
    found = lanes.pictures(
        {"fifo": over([segment(0b1111, 1800, 9000, gpus=4), segment(0b10000, 0, 60, job="b")], nodes=2)}
    )
    assert lanes.occupancy(found[0], 0) == [("n0", "25.2 %", "2 jobs"), ("n1", "0 %", "0 jobs")]


def test_the_drawing_shows_the_hour_on_the_first_page_of_nodes() -> None:
    segments = [
        segment(1, 100, 200, job="now"),
        segment(1, 4000, 4100, job="later"),
        segment(1, 100, 200, job="far", node=40),
    ]
    (picture,) = lanes.pictures({"fifo": over(segments, nodes=41)})
    drawing = lane_drawing.draw("x", picture, 0, "first hour", lanes.palette_of([picture]), True, 700)
    assert "now of t-now, 1 GPU, runs on n0 for 1 m 40 s" in drawing
    assert "later of" not in drawing and "far of" not in drawing
    assert ">n31<" in drawing and ">n32<" not in drawing


def test_blocks_of_one_tenant_that_follow_each_other_are_seen_apart() -> None:
    segments = [segment(0xFF, 0, 1800, job="a", gpus=8), segment(0xFF, 1800, 1802, job="b", gpus=8)]
    (picture,) = lanes.pictures({"fifo": over(segments)})
    drawing = lane_drawing.draw("x", picture, 0, "first hour", lanes.palette_of([picture]), False, 684)
    blocks = [
        block.attrib for block in ElementTree.fromstring(drawing).iter("rect") if "job" in str(block.attrib)
    ]
    (first, second) = [(float(block["x"]), float(block["width"])) for block in blocks]
    assert first == (74, 299.4) and second == (374, 0.8), "a sliver keeps its width"


def test_hours_have_dates_where_the_clock_tells() -> None:
    start = 1_700_000_000.0
    assert lanes.hour_name(3600.0, Calendar(None)) == "hour from 1 h to 2 h after the first submission"
    assert lanes.hour_name(3600.0, Calendar(start)) == (
        "hour from 1 h to 2 h after the first submission (2023-11-14 23:13 to 2023-11-15 00:13 UTC)"
    )
