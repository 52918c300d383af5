"""Cluster files: labels, places, queues and the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_helpers import trace_of, written

from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError
from trainmaster.model.job import Job, Request
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.units import SECOND
from trainmaster.sim.cluster_file import SCHEMA, ClusterFile, read_cluster, read_cluster_file
from trainmaster.sim.schema import ANNOTATIONS, KEYWORDS
from trainmaster.sim.sweep import simulate
from trainmaster.traces import Trace, Truth


def message(error: pytest.ExceptionInfo[InputError], path: Path | None = None) -> str:
    """The error's one line, the file left out."""
    text = str(error.value)
    assert "\n" not in text
    if path is not None:
        assert str(path) in text
        text = text.replace(str(path), "FILE")
    return text


NODES = "nodes: [{gpus: 8}]\n"


def read(folder: Path, text: str) -> ClusterFile:
    return read_cluster_file(written(folder, "c.yaml", text))


def fault(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return message(caught, folder / "c.yaml")


class TestPlaces:
    def test_levels_topology_and_labels(self, tmp_path: Path) -> None:
        cluster = read(
            tmp_path,
            "levels: [zone, rack]\nnodes:\n"
            "- {count: 2, gpus: 8, type: H100, topology: [east, r1], labels: {net: ib, disk: nvme}}\n"
            "- {name: last, gpus: 4, topology: [west, r1]}\n",
        ).cluster
        labels = (("disk", "nvme"), ("net", "ib"))
        assert cluster.levels == ("zone", "rack")
        assert cluster.nodes == (
            Node("node-0", 8, "H100", labels, ("east", "r1")),
            Node("node-1", 8, "H100", labels, ("east", "r1")),
            Node("last", 4, "", (), ("west", "r1")),
        )

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            (
                f"levels: [zone, rack]\n{NODES}",
                "FILE, row 2, column nodes[1].topology: topology is missing "
                "(give a name for each of zone, rack)",
            ),
            (
                "levels: [zone, rack]\nnodes:\n- gpus: 8\n  topology: [a]\n",
                "FILE, row 4, column nodes[1].topology: 1 names for 2 levels "
                "(give one for each of zone, rack)",
            ),
            (
                "nodes:\n- gpus: 8\n  topology: [a]\n",
                "FILE, row 3, column nodes[1].topology: the file names no levels "
                "(name them first: levels: [zone, rack])",
            ),
            (
                "levels: [rack]\nnodes: [{gpus: 8, topology: [7]}]\n",
                "FILE, row 2, column nodes[1].topology[1]: 7 is not text (write it in quotes)",
            ),
            (
                f"levels:\n- zone\n- rack\n- zone\n{NODES}",
                "FILE, row 4, column levels[3]: 'zone' stands twice",
            ),
            (
                f"levels: rack\n{NODES}",
                "FILE, row 1, column levels: levels is 'rack', not a list of names of levels "
                "(for example levels: [zone, block, rack])",
            ),
            (
                f"levels: []\n{NODES}",
                "FILE, row 1, column levels: levels is empty (for example levels: [zone, block, rack])",
            ),
            (
                "nodes:\n- gpus: 8\n  labels:\n    disk: nvme\n    gen: 3\n",
                "FILE, row 5, column nodes[1].labels.gen: gen is 3, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, labels: {2024-01-31: a}}]\n",
                "FILE, row 1, column nodes[1].labels.datetime.date(2024, 1, 31): "
                "a label is datetime.date(2024, 1, 31), not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, labels: [ssd]}]\n",
                "FILE, row 1, column nodes[1].labels: labels is ['ssd'], not labels with their values "
                "(for example labels: {disk: nvme})",
            ),
        ],
    )
    def test_faults(self, tmp_path: Path, text: str, what: str) -> None:
        assert fault(tmp_path, text) == what

    def test_the_second_of_two_equal_names_is_the_one_at_fault(self, tmp_path: Path) -> None:
        text = "nodes:\n- gpus: 8\n- gpus: 8\n  name: node-0\n"
        assert fault(tmp_path, text).startswith(
            "FILE, row 4, column nodes[2].name: node name 'node-0' stands"
        )
        text = "nodes:\n- gpus: 8\n  name: node-1\n- gpus: 8\n"
        assert fault(tmp_path, text).startswith("FILE, row 4, column nodes[2]: node name 'node-1' stands")

    def test_merged_mappings_know_their_lines(self, tmp_path: Path) -> None:
        text = "nodes:\n- &base {gpus: 4, type: A}\n- *base\n- <<: *base\n  gpus: 2\n"
        assert [node.gpus for node in read(tmp_path, text).cluster.nodes] == [4, 4, 2]
        assert fault(tmp_path, text.replace("gpus: 2", "gpus: 0")).startswith("FILE, row 5, column nodes[3]")
        assert fault(tmp_path, text.replace("A}", "5}")).startswith("FILE, row 2, column nodes[1].type")


class TestQueues:
    def test_none_named(self, tmp_path: Path) -> None:
        assert read(tmp_path, NODES).queues is None

    def test_they_belong_to_the_cluster(self, tmp_path: Path) -> None:
        path = written(tmp_path, "c.yaml", f"{NODES}queues: {{a: }}\n")
        cluster, weights = read_cluster(path)
        assert cluster.queues == read_cluster_file(path).queues == QueueTree((Queue("a"),))
        assert cluster.as_pool().queues == cluster.queues and weights == {}

    def test_a_simulation_says_that_it_does_not_heed_them(self, tmp_path: Path) -> None:
        text = "levels: [rack]\nnodes: [{gpus: 4, topology: [r1]}]\nqueues: {a: {limit: 2}}\n"
        cluster = read(tmp_path, text).cluster
        trace = trace_of((0, 10, 1), (5, 10, 4), (6, 10, 0.5))
        assert simulate(trace, cluster, "fifo").document["trace"]["ignored"] == {
            "queues (guarantees, limits, reclaim)": 3,
            "topology, for more than one GPU": 1,
        }
        assert simulate(trace, Cluster.homogeneous(1, 4), "fifo").document["trace"]["ignored"] == {}

    def test_a_tree_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        found = read(
            tmp_path,
            f"{NODES}queues:\n  vision: {{parent: lab, guaranteed: 2.5, limit: 6, weight: 0.5}}\n"
            "  lab: {guaranteed: 4, priority: 3}\n  ads:\n",
        )
        assert found.queues is not None
        assert found.queues.queues == (
            Queue("vision", "lab", guaranteed=2_500, limit=6_000, weight=0.5),
            Queue("lab", guaranteed=4_000, priority=3),
            Queue("ads"),
        )

    def test_gpus_are_taken_as_written(self, tmp_path: Path) -> None:
        found = read(tmp_path, f"{NODES}queues:\n  a: {{guaranteed: 0.001, limit: 1.1}}\n").queues
        assert found is not None and (found["a"].guaranteed, found["a"].limit) == (1, 1_100)

    def test_a_group_guarantees_what_is_guaranteed_below_it(self, tmp_path: Path) -> None:
        found = read(
            tmp_path,
            f"{NODES}queues:\n  top:\n  mid: {{parent: top}}\n  a: {{parent: mid, guaranteed: 2}}\n"
            "  b: {parent: mid, guaranteed: 3}\n  c: {parent: top, guaranteed: 1}\n"
            "  own: {guaranteed: 0}\n  d: {parent: own, guaranteed: 1}\n"
            "  tight: {limit: 2}\n  e: {parent: tight, guaranteed: 3}\n",
        ).queues
        assert found is not None
        assert {queue.name: queue.guaranteed // 1000 for queue in found.queues} == {
            "top": 6,
            "mid": 5,
            "a": 2,
            "b": 3,
            "c": 1,
            "own": 0,
            "d": 1,
            "tight": 2,
            "e": 3,
        }
        assert found.warnings(64_000) == [
            "queue own is guaranteed 0 GPUs, but d is guaranteed 1",
            "queue tight is guaranteed 2 GPUs, but e is guaranteed 3",
        ]

    def test_reclaim_is_as_above_where_nothing_is_said(self, tmp_path: Path) -> None:
        found = read(
            tmp_path,
            f"{NODES}queues:\n  c: {{parent: b}}\n  b: {{parent: a}}\n  a: {{reclaim: fair-share}}\n"
            "  d: {parent: a, reclaim: none}\n  e: {parent: d}\n  f: {}\n",
        ).queues
        assert found is not None
        assert {queue.name: queue.reclaim for queue in found.queues} == {
            "a": "fair-share",
            "b": "fair-share",
            "c": "fair-share",
            "d": "none",
            "e": "none",
            "f": "quota",
        }

    @pytest.mark.parametrize(
        ("queues", "what"),
        [
            ("", "row 2, column queues: queues is None, not queues by name (for example queues: {vis"),
            ("[a]", "row 2, column queues: queues is ['a'], not queues by name (for example queues: {vis"),
            ("{}", "row 2, column queues: queues is empty (for example queues: {vision: "),
            (
                "\n  a: 3",
                "row 3, column queues.a: a is 3, not a queue (for example a: {guaranteed: 8, limit: 16})",
            ),
            ("\n  7: {}", "row 3, column queues.7: a queue's name is 7, not text (write it in quotes)"),
            ("\n  '': {}", "row 3, column queues.: a queue's name is empty"),
            (
                "\n  a: {limits: 3}",
                "row 3, column queues.a.limits: unknown key 'limits' (did you mean 'limit'?)",
            ),
            (
                "\n  a:\n    limit:",
                "row 4, column queues.a.limit: limit is None, not a number from 0 to 1000000000 "
                "(give it a value, or leave the key out)",
            ),
            ("\n  a: {limit: -1}", "row 3, column queues.a.limit: limit is -1, not a number from 0 to"),
            ("\n  a: {limit: .nan}", "row 3, column queues.a.limit: limit is nan, not a number from 0 to"),
            ("\n  a: {weight: .inf}", "row 3, column queues.a.weight: weight is inf, not a number from 0"),
            (
                "\n  a: {weight: 1.0e-9}",
                "row 3, column queues.a.weight: queue a: weight is 1e-09 (give 0, or a number",
            ),
            (
                "\n  a: {priority: 1.5}",
                "row 3, column queues.a.priority: priority is 1.5, not a whole number",
            ),
            (
                "\n  a: {reclaim: quotas}",
                "row 3, column queues.a.reclaim: reclaim is 'quotas' (did you mean 'quota'?)",
            ),
            (
                "\n  a: {reclaim: no}",
                "row 3, column queues.a.reclaim: reclaim is False, not text (write it in quotes)",
            ),
            (
                "\n  a:\n    weight: 2\n    guaranteed: 2.0005",
                "row 5, column queues.a.guaranteed: guaranteed is 2.0005 "
                "(a thousandth of a GPU is the smallest part)",
            ),
            (
                "\n  a:\n    limit: 0.2\n    guaranteed: 0.3",
                "row 5, column queues.a.guaranteed: queue a is guaranteed 0.3 GPUs, above its limit of 0.2 "
                "(raise the limit or lower the guarantee)",
            ),
            (
                "\n  lab:\n  a:\n    parent: lap",
                "row 5, column queues.a.parent: there is no queue 'lap' (did you mean 'lab'?)",
            ),
            ("\n  a: {parent: b}", "row 3, column queues.a.parent: there is no queue 'b' (leave parent out)"),
            (
                "\n  a: {parent: b}\n  b: {parent: a}",
                "row 2, column queues: queues in a circle: a below b below a (give one of them no parent)",
            ),
            ("\n  a:\n  a:", "row 4: key 'a' stands twice"),
        ],
    )
    def test_faults(self, tmp_path: Path, queues: str, what: str) -> None:
        assert fault(tmp_path, f"{NODES}queues: {queues}\n").startswith(f"FILE, {what}")


WORDS = st.sampled_from(["a", "b", "east", "quota", "", "\x1b", "9", "gpus", "limit"])
SCALARS = WORDS | st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.dates()
NODE_KEYS = ["count", "name", "gpus", "type", "labels", "topology"]
QUEUE_KEYS = ["parent", "guaranteed", "limit", "weight", "priority", "reclaim"]
KEYS = st.sampled_from([*NODE_KEYS, *QUEUE_KEYS, "a"])
ENTRIES = st.dictionaries(KEYS | SCALARS, SCALARS | st.lists(WORDS) | st.dictionaries(WORDS, SCALARS))
GOOD = st.fixed_dictionaries({"gpus": st.integers(1, 9)})
DOCUMENTS = st.fixed_dictionaries(
    {"nodes": st.lists(GOOD | ENTRIES, max_size=3) | SCALARS},
    optional={
        "levels": st.lists(SCALARS, max_size=2) | SCALARS,
        "queues": st.dictionaries(SCALARS, ENTRIES | SCALARS, max_size=4) | SCALARS,
        "tenants": st.dictionaries(SCALARS, SCALARS) | SCALARS,
    },
)


@settings(max_examples=300)
@given(document=DOCUMENTS)
def test_any_document_gives_a_cluster_or_one_line_that_names_its_place(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-document.yaml"
    path.write_text(yaml.safe_dump(document))
    try:
        found = read_cluster_file(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
        assert error.file == str(path) and error.row is not None
    else:
        assert found.cluster.gpus == sum(entry["gpus"] * entry.get("count", 1) for entry in document["nodes"])
        assert (found.queues is None) == ("queues" not in document)


class TestSchema:
    def test_every_keyword_of_the_schema_is_checked(self) -> None:
        checked = {word for words in KEYWORDS for word in words}

        def visit(schema: dict[str, Any]) -> None:
            assert set(schema) <= checked | set(ANNOTATIONS)
            assert "type" in schema or "$ref" in schema
            if schema.get("type") == "array":
                visit(schema["items"])
            for group in ("properties", "$defs"):
                for inner in schema.get(group, {}).values():
                    visit(inner)
            for inner in (schema.get("additionalProperties"), schema.get("propertyNames")):
                if isinstance(inner, dict):
                    visit(inner)

        visit(json.loads(SCHEMA.read_text(encoding="utf-8")))

    def test_each_key_is_described(self) -> None:
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        for part in (schema, schema["$defs"]["node"], schema["$defs"]["queue"]):
            assert all(key["description"].endswith(".") for key in part["properties"].values())


def test_queues_are_heeded_by_policies_that_know_quotas() -> None:
    tree = QueueTree((Queue("a", guaranteed=8000), Queue("b", limit=4000)))
    cluster = Cluster((Node("n0", 8),), queues=tree)
    jobs = [Job(f"b{row}", row, 0, Request(4000), tenant="b") for row in range(2)]
    trace = Trace(jobs, [Truth(10 * SECOND)] * 2)
    result = simulate(trace, cluster, "standard")
    assert result.document["trace"]["ignored"] == {}
    assert sorted(result.jobs["first_start_s"]) == [0, 10], "the limit of b holds"
    both = simulate(trace, cluster, "standard,fifo")
    assert both.document["trace"]["ignored"] == {"queues (guarantees, limits, reclaim)": 2}
