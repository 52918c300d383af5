"""Clusters and failures from files, options, jobs that don't fit: each fault in one line that says where."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

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
from trainmaster.sim.cluster_file import read_cluster
from trainmaster.sim.failures import read_failures
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.prepare import prepare

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
            ("time_s,node,event\n1,0,away\n", "FILE, row 2, column event: unknown event 'away' (down or up)"),
            ("time_s,node,event\n1,0\n", "FILE, row 2: 2 fields, the header has 3"),
            ("time_s,node,event\n1,0,\n", "FILE, row 2, column event: unknown event '' (down or up)"),
            (
                "time_s,node,event\n\n\n1,0,x\n",
                "FILE, row 4, column event: unknown event 'x' (down or up)",
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
                "FILE, row 2, column event: node-0 comes up at 1 s, but is not down (let it go down before)",
            ),
            (
                "time_s,node,event\n1,0,down\n2,0,up\n3,0,up\n",
                "FILE, row 4, column event: node-0 comes up at 3 s, but is not down (let it go down before)",
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


class TestClusterFile:
    def read(self, folder: Path, text: str) -> tuple[Cluster, dict[str, float]]:
        return read_cluster(written(folder, "c.yaml", text))

    def test_groups_and_named_nodes_types_and_weights(self, tmp_path: Path) -> None:
        cluster, weights = self.read(
            tmp_path,
            "nodes:\n- {count: 2, gpus: 8, type: V100}\n- {name: big, gpus: 16}\n"
            "- {name: rack, count: 2, gpus: 1}\n- {gpus: 4}\ntenants: {vision: 2, speech: 0.5}\n",
        )
        assert cluster.nodes == (
            Node("node-0", 8, "V100"),
            Node("node-1", 8, "V100"),
            Node("big", 16),
            Node("rack-0", 1),
            Node("rack-1", 1),
            Node("node-5", 4),
        )
        assert weights == {"vision": 2.0, "speech": 0.5}

    def test_tenants_may_be_left_out(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "nodes: [{gpus: 8}]\n")[1] == {}
        assert self.read(tmp_path, "nodes: [{gpus: 8}]\ntenants:\n")[1] == {}

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("", "FILE, column nodes: expected a list of nodes (nodes: [{count: 4, gpus: 8}])"),
            ("nodes: 5\n", "FILE, column nodes: expected a list of nodes (nodes: [{count: 4, gpus: 8}])"),
            ("nodes: []\n", "FILE, column nodes: the cluster has no nodes (give at least one node)"),
            ("nodes: [8]\n", "FILE, column nodes[1]: 8 is not a node ({count: 4, gpus: 8})"),
            ("nodes: [{gpu: 8}]\n", "FILE, column nodes[1]: unknown key 'gpu' (did you mean 'gpus'?)"),
            (
                "nodes: [{gpus: 8}, {count: 2}]\n",
                "FILE, column nodes[2].gpus: gpus is None, not a whole number >= 1",
            ),
            ("nodes: [{gpus: 0}]\n", "FILE, column nodes[1].gpus: gpus is 0, not a whole number >= 1"),
            ("nodes: [{gpus: 1.5}]\n", "FILE, column nodes[1].gpus: gpus is 1.5, not a whole number >= 1"),
            ("nodes: [{gpus: true}]\n", "FILE, column nodes[1].gpus: gpus is True, not a whole number >= 1"),
            ("nodes: [{gpus: '8'}]\n", "FILE, column nodes[1].gpus: gpus is '8', not a whole number >= 1"),
            (
                "nodes: [{gpus: 1, count: -3}]\n",
                "FILE, column nodes[1].count: count is -3, not a whole number >= 1",
            ),
            (
                "nodes: [{name: a, gpus: 1}, {name: a, gpus: 2}]\n",
                "FILE, column nodes: node name 'a' stands twice (make node names unique)",
            ),
            ("nodes: [{gpus: 1}]\ntenant: {}\n", "FILE: unknown key 'tenant' (did you mean 'tenants'?)"),
            (
                "nodes: [{gpus: 1}]\ntenants: [a]\n",
                "FILE, column tenants: expected tenants with weights (tenants: {vision: 2})",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: 0}\n",
                "FILE, column tenants.a: weight 0 is not a number from 1e-06 to 1e+06",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: .inf}\n",
                "FILE, column tenants.a: weight inf is not a number from 1e-06 to 1e+06",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: .nan}\n",
                "FILE, column tenants.a: weight nan is not a number from 1e-06 to 1e+06",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: much}\n",
                "FILE, column tenants.a: weight 'much' is not a number from 1e-06 to 1e+06",
            ),
        ],
    )
    def test_faults_are_named(self, tmp_path: Path, text: str, what: str) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, text)
        assert message(caught, tmp_path / "c.yaml") == what

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("nodes: [{gpus: 8, gpus: 4}]\n", "FILE, row 1: key 'gpus' stands twice"),
            ("nodes:\n- gpus: 8\n  count: 2\n  gpus: 4\n", "FILE, row 4: key 'gpus' stands twice"),
            ("nodes: [{gpus: 8}]\nnodes: [{gpus: 4}]\n", "FILE, row 2: key 'nodes' stands twice"),
            (
                "nodes: [{gpus: 8}]\ntenants:\n  a: 1\n  b: 1\n  a: 2\n",
                "FILE, row 5: key 'a' stands twice",
            ),
        ],
    )
    def test_no_key_stands_twice(self, tmp_path: Path, text: str, what: str) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, text)
        assert message(caught, tmp_path / "c.yaml") == what

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            (
                "nodes: [{gpus: [8]}]\n",
                "FILE, column nodes[1].gpus: gpus is [8], not a whole number >= 1",
            ),
            (
                "nodes: [{gpus: 8, count: '2'}]\n",
                "FILE, column nodes[1].count: count is '2', not a whole number >= 1",
            ),
            (
                "nodes: [{gpus: 8, count: yes}]\n",
                "FILE, column nodes[1].count: count is True, not a whole number >= 1",
            ),
            (
                "nodes: [{gpus: 8, count:}]\n",
                "FILE, column nodes[1].count: count is None, not a whole number >= 1",
            ),
            (
                "nodes: [{gpus: 1000000}]\n",
                "FILE, column nodes[1].gpus: gpus is 1000000, not a whole number >= 1 (at most 100000)",
            ),
            (
                "nodes: [{gpus: 8, type: yes}]\n",
                "FILE, column nodes[1].type: type is True, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, type: [A, B]}]\n",
                "FILE, column nodes[1].type: type is ['A', 'B'], not text (give one name)",
            ),
            (
                "nodes: [{gpus: 8, type: false}]\n",
                "FILE, column nodes[1].type: type is False, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, name: 010}]\n",
                "FILE, column nodes[1].name: name is 8, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, name: {a: b}}]\n",
                "FILE, column nodes[1].name: name is {'a': 'b'}, not text (give one name)",
            ),
            (
                "nodes: [{gpus: 8, name: }]\n",
                "FILE, column nodes[1].name: name is None, not text (give one name)",
            ),
            ("nodes: [{gpus: 8, name: ''}]\n", "FILE, column nodes[1].name: name is empty (leave it out)"),
            (
                'nodes: [{gpus: 8, name: "\\e[2J"}]\n',
                "FILE, column nodes[1].name: name '\\x1b[2J' has a control character in it",
            ),
            (
                "nodes: [{gpus: 8, 5: 1}]\n",
                "FILE, column nodes[1]: unknown key 5 (known: count, gpus, name, type)",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: []\n",
                "FILE, column tenants: expected tenants with weights (tenants: {vision: 2})",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: false\n",
                "FILE, column tenants: expected tenants with weights (tenants: {vision: 2})",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: {7: 2}\n",
                "FILE, column tenants: a tenant's name is 7, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: {a: true}\n",
                "FILE, column tenants.a: weight True is not a number from 1e-06 to 1e+06",
            ),
            (
                f"nodes: [{{gpus: 8}}]\ntenants: {{a: 1{'0' * 50}}}\n",
                "FILE, column tenants.a: weight 100000000000000000...0000000000000000000 "
                "is not a number from 1e-06 to 1e+06",
            ),
            (
                "nodes: [{gpus: 1, count: 60000}, {gpus: 1, count: 60000}]\n",
                "FILE, column nodes[2].count: over 100000 nodes (give fewer)",
            ),
            (
                "nodes: [!!int x]\n",
                "FILE: not valid YAML: invalid literal for int() with base 10: 'x'",
            ),
        ],
    )
    def test_odd_types_are_named(self, tmp_path: Path, text: str, what: str) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, text)
        assert message(caught, tmp_path / "c.yaml") == what

    def test_references_that_would_be_huge_are_shown_in_short(self, tmp_path: Path) -> None:
        names = "abcdefghijklmnopqrstuvwxyz"
        lines = ["a: &a [x]"] + [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
        text = "\n".join([*lines, "nodes: [*z]\n"])
        for shown in (text, text.replace("nodes: [*z]", "nodes: [{gpus: *z}]")):
            with pytest.raises(InputError) as caught:
                self.read(tmp_path, shown)
            assert len(message(caught)) < 400

    @pytest.mark.parametrize("text", ["nodes: [{gpus: 8}\n", "nodes:\n\t- gpus: 1\n", "a: b: c\n"])
    def test_yaml_that_is_none_names_the_line(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, text)
        assert message(caught, tmp_path / "c.yaml").startswith("FILE, row ")

    @pytest.mark.parametrize("text", ["nodes: 2001-99-99\n", "[" * 2000, "a: \0\n", "? [a]\n: b\n"])
    def test_odd_yaml_is_one_line_too(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, text)
        assert message(caught, tmp_path / "c.yaml").startswith("FILE")

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="can't be read: No such file"):
            read_cluster(tmp_path / "none.yaml")
        with pytest.raises(InputError, match="can't be read: Is a directory"):
            read_cluster(tmp_path)
        (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\xff")
        with pytest.raises(InputError, match="not a text file"):
            read_cluster(tmp_path / "c.yaml")

    @settings(max_examples=60)
    @given(text=st.text(alphabet="nodesgpu:[]{},- \n0123456789'\"&*!?|>%@`#tT", max_size=60))
    def test_any_text_gives_a_cluster_or_one_line(
        self, tmp_path_factory: pytest.TempPathFactory, text: str
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "fuzz-cluster.yaml"
        path.write_text(text)
        try:
            read_cluster(path)
        except InputError as error:
            assert len(str(error).splitlines()) == 1


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
        with pytest.raises(InputError, match=r"no job is left to simulate \(1 larger_than_cluster\)"):
            prepare(trace_of((0, 10, 9)), [TWO], create("fifo"))
        with pytest.raises(InputError, match=r"no job is left to simulate \(the trace is empty\)"):
            prepare(trace_of(), [TWO], create("fifo"))

    def test_what_is_not_modelled_is_told(self) -> None:
        trace = trace_of((0, 10, 1), depends_on=("x",))
        assert prepare(trace, [TWO], create("fifo")).ignored == {"depends_on": 1}
