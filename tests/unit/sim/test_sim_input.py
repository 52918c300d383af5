"""Failures from files, options, jobs that don't fit: each fault in one line that says where."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_helpers import trace_of, written

import trainmaster as tm
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError
from trainmaster.model.event import NodeDown, NodeUp
from trainmaster.model.units import SECOND
from trainmaster.policies.registry import create
from trainmaster.sim.failures import read_failures
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.prepare import prepare
from trainmaster.traces import load_trace

TWO = Cluster.homogeneous(2, 4)


def message(error: pytest.ExceptionInfo[InputError], path: Path | None = None) -> str:
    """The error's one line, the file left out."""
    text = str(error.value)
    assert "\n" not in text
    if path is not None:
        assert str(path) in text
        text = text.replace(str(path), "FILE")
    return text


class TestFailures:
    def read(self, folder: Path, text: str) -> list[tuple[int, NodeDown | NodeUp]]:
        return read_failures(written(folder, "f.csv", text), TWO)

    def test_nodes_by_name_or_index_instants_in_seconds(self, tmp_path: Path) -> None:
        text = "time_s,node,event\n3600,node-1,down\n0.5,0,down\n7200,node-1,up\n"
        assert self.read(tmp_path, text) == [
            (3600 * SECOND, NodeDown(1)),
            (SECOND // 2, NodeDown(0)),
            (7200 * SECOND, NodeUp(1)),
        ]

    def test_other_columns_spaces_and_order_do_not_matter(self, tmp_path: Path) -> None:
        text = "cause,event,node,time_s\npower, down ,node-0, 5 \n"
        assert self.read(tmp_path, text) == [(5 * SECOND, NodeDown(0))]

    def test_a_node_may_fail_again_and_come_up_at_once(self, tmp_path: Path) -> None:
        text = "time_s,node,event\n4,0,up\n4,0,down\n1,0,down\n2,0,up\n"
        assert [at for at, _ in self.read(tmp_path, text)] == [4 * SECOND, 4 * SECOND, SECOND, 2 * SECOND]

    def test_no_failures_is_fine(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "time_s,node,event\n") == []

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("", "FILE, row 1, column time_s: missing column (time_s,node,event)"),
            ("time_s,nodes,event\n", "FILE, row 1, column node: missing column (time_s,node,event)"),
            (
                "time_s,node,event\nx,0,up\n",
                "FILE, row 2, column time_s: 'x' is not a time in seconds, 0 to 9e+09",
            ),
            (
                "time_s,node,event\n-1,0,up\n",
                "FILE, row 2, column time_s: '-1' is not a time in seconds, 0 to 9e+09",
            ),
            (
                "time_s,node,event\nnan,0,up\n",
                "FILE, row 2, column time_s: 'nan' is not a time in seconds, 0 to 9e+09",
            ),
            (
                "time_s,node,event\n1e400,0,up\n",
                "FILE, row 2, column time_s: '1e400' is not a time in seconds, 0 to 9e+09",
            ),
            (
                "time_s,node,event\n1,0,up\n1,node-2,up\n",
                "FILE, row 3, column node: unknown node 'node-2' (did you mean 'node-1'?)",
            ),
            (
                "time_s,node,event\n1,2,up\n",
                "FILE, row 2, column node: unknown node '2' (known: node-0, node-1)",
            ),
            (
                "time_s,node,event\n1,²,up\n",
                "FILE, row 2, column node: unknown node '²' (known: node-0, node-1)",
            ),
            (
                "time_s,node,event\n1,0,away\n",
                "FILE, row 2, column event: unknown event 'away' (down, drain or up)",
            ),
            ("time_s,node,event\n1,0\n", "FILE, row 2: 2 fields, the header has 3"),
            ("time_s,node,event\n1,0,\n", "FILE, row 2, column event: unknown event '' (down, drain or up)"),
            (
                "time_s,node,event\n\n\n1,0,x\n",
                "FILE, row 4, column event: unknown event 'x' (down, drain or up)",
            ),
            (
                "time_s;node;event\n1;0;down\n",
                "FILE, row 1, column time_s: missing column "
                "(columns must be separated by ',', this file uses ';')",
            ),
            (
                "time_s\tnode\tevent\n1\t0\tdown\n",
                "FILE, row 1, column time_s: missing column "
                "(columns must be separated by ',', this file uses a tab)",
            ),
            (
                "time_s,node,event,node\n",
                "FILE, row 1, column node: the column is there twice (time_s,node,event)",
            ),
            (
                'time_s,node,event\n1,"0,down\n2,1,down\n',
                "FILE, row 2: a quoted field does not end on its line (remove the quote)",
            ),
            (
                "time_s,node,event\n1,0,down\n5,1,down\n9,node-0,down\n",
                "FILE, row 4, column event: node-0 goes down at 9 s, but is down since row 2 "
                "(let it come up between)",
            ),
            (
                "time_s,node,event\n9,0,down\n1,0,down\n",
                "FILE, row 2, column event: node-0 goes down at 9 s, but is down since row 3 "
                "(let it come up between)",
            ),
            (
                "time_s,node,event\n1,0,up\n",
                "FILE, row 2, column event: node-0 comes up at 1 s, but is not down or drained "
                "(let it go down before)",
            ),
            (
                "time_s,node,event\n1,0,down\n2,0,up\n3,0,up\n",
                "FILE, row 4, column event: node-0 comes up at 3 s, but is up since row 3 "
                "(let it go down before)",
            ),
            (
                "time_s,node,event\n1,0,drain\n2,0,drain\n",
                "FILE, row 3, column event: node-0 is drained at 2 s, but is drained since row 2 "
                "(let it come up between)",
            ),
        ],
    )
    def test_faults_are_named(self, tmp_path: Path, text: str, what: str) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, text)
        assert message(caught, tmp_path / "f.csv") == what

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be read: No such file"):
            read_failures(tmp_path / "none.csv", TWO)
        with pytest.raises(InputError, match="cannot be read: Is a directory"):
            read_failures(tmp_path, TWO)
        (tmp_path / "f.csv").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(InputError, match="is not UTF-8 text"):
            read_failures(tmp_path / "f.csv", TWO)

    @settings(max_examples=50)
    @given(text=st.text(max_size=80))
    def test_any_text_gives_events_or_one_line(
        self, tmp_path_factory: pytest.TempPathFactory, text: str
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "fuzz-failures.csv"
        path.write_bytes(f"time_s,node,event\n{text}".encode(errors="replace"))
        try:
            found = read_failures(path, TWO)
        except InputError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert isinstance(found, list)

    def test_a_pool_has_no_nodes_that_fail(self, tmp_path: Path) -> None:
        failures = written(tmp_path, "f.csv", "time_s,node,event\n1,0,down\n")
        with pytest.raises(InputError, match="a pool has no nodes that could fail"):
            tm.simulate(trace_of((0, 5, 1)), TWO, "fifo", placement="pool", failures=failures)


class TestOptions:
    @pytest.mark.parametrize(
        ("kind", "name", "value"),
        [
            *(
                (Costs, field.name, value)
                for field in dataclasses.fields(Costs)
                for value in (-1, float("nan"))
            ),
            (Costs, "restore_s", float("inf")),
            (Costs, "checkpoint_interval_s", 0),
            (Options, "warmup_s", -1),
            (Options, "cooldown_s", float("nan")),
            (Options, "relax_s", -0.1),
            (Options, "relax_s", float("inf")),
            (Options, "placement", "pak"),
        ],
    )
    def test_bad_values_are_refused(self, kind: type[Costs | Options], name: str, value: object) -> None:
        with pytest.raises(InputError) as caught:
            kind(**{name: value})  # type: ignore[arg-type]
        assert message(caught)

    def test_costs_that_are_free(self) -> None:
        assert Costs(0, 0, 0).free
        assert not any(Costs(*cost).free for cost in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))


class TestPrepare:
    def test_jobs_that_never_fit_are_counted_by_reason(self) -> None:
        cluster = Cluster((Node("a", 4, "A"), Node("b", 2, "B")))
        trace = trace_of((0, 10, 1), (1, 10, 7), (2, 10, 3), (3, 10, 6))
        trace.jobs[2] = dataclasses.replace(
            trace.jobs[2], request=dataclasses.replace(trace.jobs[2].request, gpu_types=("C",))
        )
        found = prepare(trace, [cluster], create("fifo"))
        assert [job.id for job in found.jobs] == ["j0", "j3"]
        assert [job.sequence for job in found.jobs] == [0, 1]
        assert found.dropped == {"larger_than_cluster": 1, "gpu_type_not_offered": 1}

    def test_all_clusters_of_a_sweep_get_the_same_jobs(self) -> None:
        trace = trace_of((0, 10, 1), (1, 10, 8))
        found = prepare(trace, [Cluster.homogeneous(2, 4), Cluster.homogeneous(1, 4)], create("fifo"))
        assert [job.id for job in found.jobs] == ["j0"]

    def test_a_pool_takes_what_nodes_would_not(self) -> None:
        uneven = Cluster((Node("a", 4), Node("b", 3)))
        trace = trace_of((0, 10, 7))
        trace.jobs[0] = dataclasses.replace(
            trace.jobs[0], request=dataclasses.replace(trace.jobs[0].request, gpu_types=("Z",))
        )
        assert len(prepare(trace, [uneven], create("fifo", placement="pool")).jobs) == 1

    def test_strict_raises_for_the_first(self) -> None:
        with pytest.raises(InputError, match="job j1: asks 9 GPUs, which the cluster can't offer"):
            prepare(trace_of((0, 10, 1), (1, 10, 9)), [TWO], create("fifo"), strict=True)

    def test_nothing_left_is_an_error(self) -> None:
        with pytest.raises(InputError, match=r"no job is left to simulate: 1 larger than cluster$"):
            prepare(trace_of((0, 10, 9)), [TWO], create("fifo"))
        with pytest.raises(InputError, match=r"no job is left to simulate: the trace is empty"):
            prepare(trace_of(), [TWO], create("fifo"))

    def test_nothing_left_shows_the_first_row_at_fault(self, tmp_path: Path) -> None:
        log = tmp_path / "iso.csv"
        log.write_text(
            "job_id,submit_s,duration_s,num_gpus\n"
            "a,2026-11-01 08:00,60,1\nb,2026-11-01 09:00,60,1\nc,5,60,0\n"
        )
        with pytest.raises(InputError) as caught:
            prepare(load_trace(log), [TWO], create("fifo"))
        assert str(caught.value) == (
            f"{log}: no job is left to simulate: 2 submit invalid, 1 zero gpus; row 2, column submit_s: "
            "'2026-11-01 08:00' is not a finite time (seconds, such as 3600 or 0.5; "
            "for dates, seconds since 1970)"
        )

    @pytest.mark.parametrize(
        ("trace", "cluster", "what"),
        [
            ("week.csv", TWO, r"trace is 'week.csv', not a Trace \(load it: tm.load_trace\(path\)\)"),
            (Path("week.csv"), TWO, r"trace is PosixPath\('week.csv'\), not a Trace"),
            (trace_of((0, 10, 1)), 63, r"cluster is 63, not a Cluster \(tm.Cluster.homogeneous\("),
            (trace_of((0, 10, 1)), "c.yaml", r"cluster is 'c.yaml', not a Cluster"),
            (trace_of((0, 10, 1)), [TWO, 3], r"cluster is 3, not a Cluster"),
        ],
    )
    def test_what_is_no_trace_or_cluster(self, trace: Any, cluster: Any, what: str) -> None:
        with pytest.raises(InputError, match=what):
            tm.simulate(trace, cluster, "fifo")

    def test_what_is_not_modelled_is_told(self) -> None:
        trace = trace_of((0, 10, 1), depends_on=("x",))
        assert prepare(trace, [TWO], create("fifo")).ignored == {"depends_on": 1}
