"""The page: structure, self-containment, escaping, and what appears when."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from report_folder import POLICIES, edit_json, edit_rows, write_folder

from trainmaster.model.errors import OutputError
from trainmaster.report import lanes, load_records, write_report

Copied = Callable[[], Path]
VOID = {"meta", "link", "input", "br", "wbr", "hr", "img"}
Attributes = dict[str, str | None]


class Page(HTMLParser):
    """A parsed page: its elements in order, its text, and whether its tags balance."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.elements: list[tuple[str, Attributes]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing, line {self.getpos()[0]}"

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute)) is not None]

    def text(self, *, without: tuple[str, ...] = ("style", "script")) -> str:
        return " ".join(data for tag, data in self.texts if tag not in without).replace("\xa0", " ")

    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.elements if re.fullmatch("h[1-6]", tag)]


def page_of(folder: Path, target: Path) -> Page:
    path = target / "report.html"
    write_report(folder, path)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(folder, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def variants(
    page: Page, folder: Path, sweep_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Page]:
    """One policy, a pool without nodes, a sweep, many policies, nothing finished."""
    base = tmp_path_factory.mktemp("variants")
    one = write_folder(base / "one", policies=["sjf"], count=80, days=1)
    pool = write_folder(
        base / "pool", policies=["fifo", "srtf"], count=80, days=1, placement="pool", dropped={}
    )
    many = write_folder(base / "many", policies=list(POLICIES), nodes=(40,), count=120, days=1)
    empty = Path(shutil.copytree(folder, base / "empty"))
    edit_json(empty / "summary.json", nothing_finished)
    edit_json(empty / "series.json", lambda document: document.update(runs=[]))
    edit_rows(empty / "jobs.csv", lambda rows: [row.update(jct_s="", wait_s="") for row in rows])
    folders = {"one": one, "pool": pool, "many": many, "empty": empty, "sweep": sweep_folder}
    return {"four": page} | {name: page_of(path, base) for name, path in folders.items()}


def nothing_finished(document: dict[str, Any]) -> None:
    for run in document["runs"]:
        for key, value in run.items():
            if isinstance(value, int | float) and key not in ("jobs", "seed"):
                run[key] = None
        run["finished"] = 0
    document["trace"] |= {"span_s": 0, "gpu_hours": 0}


def test_nothing_is_fetched(variants: dict[str, Page]) -> None:
    for page in variants.values():
        for name in ("src", "srcset", "action", "data", "poster", "xlink:href", "background"):
            assert page.values(name) == []
        assert all(value.startswith("#") or value == "data:," for value in page.values("href"))
        assert not re.search(
            r"https?:|//[a-z]|@import|url\(|fetch\(|XMLHttp|sendBeacon|WebSocket", without_namespace(page)
        )
        policy = next(
            a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy is not None and policy.startswith("default-src 'none'; ")
        assert "connect-src" not in policy and "http" not in policy


def without_namespace(page: Page) -> str:
    return re.sub(r"^\s*//.*$", "", page.source, flags=re.M).replace('"http://www.w3.org/2000/svg"', "")


def test_headings_are_in_order(variants: dict[str, Page]) -> None:
    for page in variants.values():
        levels = page.headings()
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_ids_are_unique_and_references_resolve(variants: dict[str, Page]) -> None:
    for page in variants.values():
        ids = page.values("id")
        assert len(ids) == len(set(ids))
        references = page.values("aria-labelledby") + [
            value[1:] for value in page.values("href") if value[0] == "#"
        ]
        assert set(references) <= set(ids)


def test_charts_have_titles_and_controls_have_names(variants: dict[str, Page]) -> None:
    for page in variants.values():
        for index, (tag, attributes) in enumerate(page.elements):
            if tag == "svg":
                following, title = page.elements[index + 1]
                assert attributes["role"] == "img" and following == "title"
                assert attributes["aria-labelledby"] == title["id"]
        assert all(a.get("scope") for a in page.all("th"))
        assert all(
            a.get("aria-label") and a.get("tabindex") == "0"
            for a in page.all("div")
            if a.get("role") == "region"
        )
        assert page.all("html")[0]["lang"] == "en"
        assert any(a.get("name") == "viewport" for a in page.all("meta"))
        for title in (data for tag, data in page.texts if tag == "title"):
            assert title.strip()


def test_every_chart_has_a_table(page: Page) -> None:
    figures = re.findall(r"<figure.*?</figure>", page.source, flags=re.S)
    charts = [figure for figure in figures if "<svg" in figure]
    assert len(charts) == 6
    assert all("<details" in figure and "<table>" in figure for figure in charts)


def test_it_says_what_was_found(page: Page, folder: Path) -> None:
    text = re.sub(r"\s+", " ", page.text())
    assert (
        "srtf finishes the average job in 4 h 45 m, 1.2 times as fast as fifo(backfill=greedy), but" in text
    )
    assert "The price: 163 preemptions" in text
    assert "Synthetic trace." in text
    assert "zero GPUs 7 duration <= 0 2" in text
    assert "32 GPUs on 4 nodes" in text
    assert "trainmaster simulate out/philly-like-synthetic-week.csv.gz" in text
    for run in load_records(folder).runs:
        assert run.policy in text


def test_who_loses_is_said_in_words(page: Page) -> None:
    text = re.sub(r"\s+", " ", page.text())
    assert "Who would lose under srtf, compared with fifo(backfill=greedy)" in text
    assert re.search(r"Of 300 jobs, \d+ \([0-9.]+ %\) wait longer under srtf than under fifo", text)
    assert re.search(r"vc\d \d+ [^▲]+ ▲ worse by \d", text) and "▼ better by" in text
    assert re.search(r"The 5 worst-hit jobs .* job-\d+ vc\d \d", text)


def test_what_has_no_data_does_not_appear(variants: dict[str, Page]) -> None:
    sections = {name: set(page.values("id")) for name, page in variants.items()}
    everything = {"winner", "setting", "jct", "waiting", "time", "lanes", "numbers", "measures", "again"}
    assert sections["four"] >= everything and "sweep" not in sections["four"]
    assert sections["one"] >= everything and sections["many"] >= everything
    assert "lanes" not in sections["pool"] and "lane-data" not in sections["pool"]
    assert sections["sweep"] >= everything | {"sweep"}
    assert not sections["empty"] & {"jct", "waiting", "time", "lanes"}
    for page in variants.values():
        assert "Deadlines" not in page.text() and "Fairness" not in page.text()
    assert "effects" in sections["four"] and "effects" not in sections["one"] | sections["empty"]
    assert "Which policy wins" not in variants["one"].text()
    assert "None: every row was replayed." in variants["pool"].text()


def test_what_does_not_apply_is_a_dash_that_says_why(variants: dict[str, Page]) -> None:
    page = variants["empty"]
    assert "No job finished" in page.text()
    assert {"title": "no job finished"} in page.all("abbr")
    assert not re.search(r">(None|nan|null)<", page.source)
    assert "did not finish" in page.text()


def test_a_sweep_names_the_cluster_of_its_figures(variants: dict[str, Page]) -> None:
    text = re.sub(r"\s+", " ", variants["sweep"].text())
    heading = re.findall(r"<h1>(.*?)</h1>", variants["sweep"].source, flags=re.S)[0].replace("\xa0", " ")
    assert " on 3 nodes with seed 0, " in heading
    assert "The price on 3 nodes with seed 0: " in text
    assert "Which policy wins on 3 nodes with seed 0, and at what price" in text
    assert "24 GPUs on 3 nodes, 32 GPUs on 4 nodes and 48 GPUs on 6 nodes" in text
    assert "Which policy wins, and at what price" in variants["four"].text()


def test_a_recorded_command_is_shown_one_option_a_line(copied: Copied, tmp_path: Path) -> None:
    folder = copied()
    command = "trainmaster simulate 'a&b <c>.csv' --nodes 4 --policy fifo,srtf"
    assert "must be added" in page_of(folder, tmp_path).text()
    edit_json(folder / "summary.json", lambda document: document.update(command=command))
    page = page_of(folder, tmp_path)
    (shown,) = [data for tag, data in page.texts if tag == "code"]
    assert shown.splitlines() == [
        "trainmaster simulate 'a&b <c>.csv' \\",
        "  --nodes 4 \\",
        "  --policy fifo,srtf",
    ]
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(command), "it can be pasted"
    assert "&lt;c&gt;.csv" in page.source and "<c>" not in page.source
    assert "must be added" not in page.text()


def test_utilization_while_jobs_arrive_stands_beside_utilization(copied: Copied, tmp_path: Path) -> None:
    folder = copied()
    assert "utilization in span" not in page_of(folder, tmp_path).text()
    edit_json(folder / "summary.json", lambda document: document["runs"][0].update(utilization_in_span=0.876))
    page = page_of(folder, tmp_path)
    assert re.search(r"preemptions\s+makespan\s+utilization\s+utilization in span\s+overhead", page.text())
    assert "87.6 %" in page.text() and "while jobs still arrived" in page.text()


def test_deadlines_appear_with_their_data(copied: Copied, tmp_path: Path) -> None:
    folder = copied()
    edit_json(
        folder / "summary.json", lambda document: document["runs"][0].update(miss_rate=0.4, fairness_loss=0.1)
    )
    text = page_of(folder, tmp_path).text()
    assert "Deadlines" in text and "Fairness between tenants" in text and "40.0 %" in text


def test_warm_up_and_ignored_wishes_are_told(copied: Copied, tmp_path: Path) -> None:
    folder = copied()

    def change(document: dict[str, Any]) -> None:
        document["trace"] |= {
            "ignored": {"GPU type": 12},
            "path": "week.csv",
            "name": "Week",
            "synthetic": False,
        }
        for run in document["runs"]:
            run.update(jobs=250, finished=250)

    edit_json(folder / "summary.json", change)
    text = page_of(folder, tmp_path).text()
    assert "The figures count 250 of 300 jobs" in text and "Synthetic" not in text
    assert re.search(r"not heeded in the replay\s+wish\s+jobs\s+GPU type\s+12", text)


HOSTILE = "</script><script>alert(1)</script><b a='\"'>&amp;{{ 7*7 }}"


def test_whatever_comes_from_the_records_is_escaped(copied: Copied, tmp_path: Path) -> None:
    folder = copied()

    def rename(document: dict[str, Any]) -> None:
        for run in document["runs"]:
            run["policy"] = run["policy"].replace("srtf", HOSTILE)
            run["predictor"] = HOSTILE
        if "trace" in document:
            document["trace"] |= {"path": HOSTILE, "dropped": {HOSTILE: 1}, "ignored": {HOSTILE: 1}}
            document["trainmaster"] = HOSTILE
            document["command"] = HOSTILE

    def rename_lanes(document: dict[str, Any]) -> None:
        rename(document)
        for run in document["runs"]:
            run["lanes"]["nodes"] = [{"name": HOSTILE, "gpus": 8} for _ in run["lanes"]["nodes"]]
            for segment in run["lanes"]["segments"]:
                segment[4] = segment[5] = HOSTILE

    def rename_jobs(rows: list[dict[str, Any]]) -> None:
        for index, row in enumerate(rows):
            row.update(
                policy=row["policy"].replace("srtf", HOSTILE), job_id=HOSTILE + str(index), tenant=HOSTILE
            )
            if index % 2:
                row["tenant"] = "vc1"

    edit_json(folder / "summary.json", rename)
    edit_json(folder / "series.json", rename_lanes)
    edit_rows(folder / "jobs.csv", rename_jobs)
    page = page_of(folder, tmp_path)
    assert "<script>alert" not in page.source and "<b a=" not in page.source
    assert len(page.all("script")) == 3 and page.all("b") == []
    assert "49" not in re.findall(r"<h1>.*?</h1>", page.source, flags=re.S)[0]
    assert HOSTILE in page.text()
    data = json.loads(next(d for tag, d in page.texts if tag == "script" and d.startswith("{")))
    assert any(job[0] == HOSTILE for job in data["jobs"])


def test_the_lane_data_and_the_controls_agree(page: Page, variants: dict[str, Page]) -> None:
    for current in (page, variants["many"]):
        data = json.loads(next(d for tag, d in current.texts if tag == "script" and d.startswith("{")))
        slider = next(a for a in current.all("input") if a.get("type") == "range")
        assert slider["max"] == str(data["policies"][0]["hours"] - 1) and slider["value"] == str(data["hour"])
        assert len(data["policies"]) == len({item["policy"] for item in data["policies"]})
        for policy in data["policies"]:
            bars = policy["bars"]
            assert len(bars) % 7 == 0 and bars
            assert max(bars[0::7]) < len(policy["nodes"]) and max(bars[5::7]) < len(data["jobs"])
    assert "33 to 40" in variants["many"].text()


def test_a_large_result_stays_small(copied: Copied, tmp_path: Path) -> None:
    """However many segments are recorded, the page embeds lanes.MOST_BARS at most."""
    folder = copied()

    def multiply(document: dict[str, Any]) -> None:
        for run in document["runs"]:
            run["lanes"]["segments"] = [
                [
                    i % 4,
                    1 << i % 8,
                    1e3 + 0.5 * i,
                    1e3 + 0.5 * i + 30,
                    f"application_1506638472019_{i}",
                    "vc1",
                    1,
                    "run",
                ]
                for i in range(15_000)
            ]
            run["lanes"] |= {"from_s": 0.0, "to_s": 9000.0}
            for name in ("used_gpus", "running_jobs", "pending_jobs", "pending_gpus"):
                run["buckets"][name] = [float(i * 7 % 32) for i in range(2600)]

    edit_json(folder / "series.json", multiply)
    page = page_of(folder, tmp_path)
    data = json.loads(next(d for tag, d in page.texts if tag == "script" and d.startswith("{")))
    assert sum(len(policy["bars"]) for policy in data["policies"]) // 7 <= lanes.MOST_BARS
    assert len(page.source.encode()) < 3_000_000
    assert "the page holds a part of what was recorded" in page.text()


def test_the_same_records_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_report(folder, tmp_path / "a.html")
    write_report(load_records(folder), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_failed_write_leaves_the_old_report_and_nothing_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(self: Path, *args: object, **kwargs: object) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OutputError, match=r"report\.html: can't be written: No space left on device"):
        write_report(folder, target)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_bytes() == b"old"


def test_places_that_cant_be_written(folder: Path, tmp_path: Path) -> None:
    for target in (tmp_path / "absent" / "report.html", tmp_path):
        with pytest.raises(OutputError, match="can't be written"):
            write_report(folder, target)
    assert list(tmp_path.iterdir()) == []


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_text_contrast_is_aa_in_light_and_dark(page: Page) -> None:
    themes = [
        dict(re.findall(r"--([a-z]+\d?): (#[0-9a-f]{6})", block))
        for block in re.findall(r"\{([^{}]*--paper:[^{}]*)\}", page.source)
    ]
    assert len(themes) == 3 and themes[1] == themes[2] != themes[0]
    for theme in themes:
        for name in ("ink", "soft", "good", "bad", "link", "accent", "cb", *(f"c{i}" for i in range(8))):
            assert contrast(theme[name], theme["paper"]) >= 4.5, name
        assert contrast(theme["ink"], theme["panel"]) >= 4.5
        for name in (f"t{i}" for i in range(8)):
            assert contrast(theme[name], theme["lane"]) >= 1.9, name


def test_how_long_the_computing_took_changes_nothing(copied: Copied, tmp_path: Path) -> None:
    """Equal input and seed give an equal page, on any machine."""
    pages = []
    for factor in (1, 3):
        folder = copied()

        def slow(document: Any, factor: int = factor) -> None:
            for entry in document["runs"]:
                for name in ("cpu_s", "wall_s", "decision_ms_mean", "decision_ms_p99"):
                    entry[name] *= factor
                entry["peak_rss_mib"] = 100.0 * factor

        edit_json(folder / "summary.json", slow)
        write_report(folder, tmp_path / "report.html")
        pages.append((tmp_path / "report.html").read_bytes())
    assert pages[0] == pages[1]
