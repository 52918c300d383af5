"""Clusters from files: each fault in one line that says where."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_helpers import written

from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError
from trainmaster.sim.cluster_file import read_cluster


def message(error: pytest.ExceptionInfo[InputError], path: Path | None = None) -> str:
    """The error's one line, the file left out."""
    text = str(error.value)
    assert "\n" not in text
    if path is not None:
        assert str(path) in text
        text = text.replace(str(path), "FILE")
    return text


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
            ("", "FILE, column nodes: nodes is missing (for example nodes: [{count: 4, gpus: 8}])"),
            (
                "nodes: 5\n",
                "FILE, row 1, column nodes: nodes is 5, "
                "not a list of nodes (for example nodes: [{count: 4, gpus: 8}])",
            ),
            (
                "nodes: []\n",
                "FILE, row 1, column nodes: nodes is empty (for example nodes: [{count: 4, gpus: 8}])",
            ),
            (
                "nodes: [8]\n",
                "FILE, row 1, column nodes[1]: 8 is not a node (for example {count: 4, gpus: 8})",
            ),
            (
                "nodes: [{gpu: 8}]\n",
                "FILE, row 1, column nodes[1].gpu: unknown key 'gpu' (did you mean 'gpus'?)",
            ),
            (
                "nodes: [{gpus: 8}, {count: 2}]\n",
                "FILE, row 1, column nodes[2].gpus: gpus is missing (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: 0}]\n",
                "FILE, row 1, column nodes[1].gpus: gpus is 0, "
                "not a whole number from 1 to 100000 (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: 1.5}]\n",
                "FILE, row 1, column nodes[1].gpus: gpus is 1.5, "
                "not a whole number from 1 to 100000 (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: true}]\n",
                "FILE, row 1, column nodes[1].gpus: gpus is True, "
                "not a whole number from 1 to 100000 (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: '8'}]\n",
                "FILE, row 1, column nodes[1].gpus: gpus is '8', "
                "not a whole number from 1 to 100000 (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: 1, count: -3}]\n",
                "FILE, row 1, column nodes[1].count: count is -3, not a whole number from 1 to 100000",
            ),
            (
                "nodes: [{name: a, gpus: 1}, {name: a, gpus: 2}]\n",
                "FILE, row 1, column nodes[2].name: node name 'a' stands twice (make node names unique)",
            ),
            (
                "nodes: [{gpus: 1}]\ntenant: {}\n",
                "FILE, row 2, column tenant: unknown key 'tenant' (did you mean 'tenants'?)",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: [a]\n",
                "FILE, row 2, column tenants: tenants is ['a'], "
                "not weights by tenant (for example tenants: {vision: 2})",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: 0}\n",
                "FILE, row 2, column tenants.a: a is 0, not a number from 1e-06 to 1000000",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: .inf}\n",
                "FILE, row 2, column tenants.a: a is inf, not a number from 1e-06 to 1000000",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: .nan}\n",
                "FILE, row 2, column tenants.a: a is nan, not a number from 1e-06 to 1000000",
            ),
            (
                "nodes: [{gpus: 1}]\ntenants: {a: much}\n",
                "FILE, row 2, column tenants.a: a is 'much', "
                "not a number from 1e-06 to 1000000 (write a plain number, such as 2)",
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
                "FILE, row 1, column nodes[1].gpus: gpus is [8], "
                "not a whole number from 1 to 100000 (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: 8, count: '2'}]\n",
                "FILE, row 1, column nodes[1].count: count is '2', "
                "not a whole number from 1 to 100000 (write a plain number, such as 2)",
            ),
            (
                "nodes: [{gpus: 8, count: yes}]\n",
                "FILE, row 1, column nodes[1].count: count is True, not a whole number from 1 to 100000",
            ),
            (
                "nodes: [{gpus: 8, count:}]\n",
                "FILE, row 1, column nodes[1].count: count is None, "
                "not a whole number from 1 to 100000 (give it a value, or leave the key out)",
            ),
            (
                "nodes: [{gpus: 1000000}]\n",
                "FILE, row 1, column nodes[1].gpus: gpus is 1000000, "
                "not a whole number from 1 to 100000 (for example gpus: 8)",
            ),
            (
                "nodes: [{gpus: 8, type: yes}]\n",
                "FILE, row 1, column nodes[1].type: type is True, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, type: [A, B]}]\n",
                "FILE, row 1, column nodes[1].type: type is ['A', 'B'], not text (give one name)",
            ),
            (
                "nodes: [{gpus: 8, type: false}]\n",
                "FILE, row 1, column nodes[1].type: type is False, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, name: 010}]\n",
                "FILE, row 1, column nodes[1].name: name is 8, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8, name: {a: b}}]\n",
                "FILE, row 1, column nodes[1].name: name is {'a': 'b'}, not text (give one name)",
            ),
            (
                "nodes: [{gpus: 8, name: }]\n",
                "FILE, row 1, column nodes[1].name: name is None, "
                "not text (give it a value, or leave the key out)",
            ),
            (
                "nodes: [{gpus: 8, name: ''}]\n",
                "FILE, row 1, column nodes[1].name: name is empty (leave it out, or give a name)",
            ),
            (
                'nodes: [{gpus: 8, name: "\\e[2J"}]\n',
                "FILE, row 1, column nodes[1].name: name '\\x1b[2J' has a control character in it",
            ),
            (
                "nodes: [{gpus: 8, 5: 1}]\n",
                "FILE, row 1, column nodes[1].5: unknown key 5 "
                "(known: count, gpus, labels, name, topology, type)",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: []\n",
                "FILE, row 2, column tenants: tenants is [], "
                "not weights by tenant (for example tenants: {vision: 2})",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: false\n",
                "FILE, row 2, column tenants: tenants is False, "
                "not weights by tenant (for example tenants: {vision: 2})",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: {7: 2}\n",
                "FILE, row 2, column tenants.7: a tenant's name is 7, not text (write it in quotes)",
            ),
            (
                "nodes: [{gpus: 8}]\ntenants: {a: true}\n",
                "FILE, row 2, column tenants.a: a is True, not a number from 1e-06 to 1000000",
            ),
            (
                f"nodes: [{{gpus: 8}}]\ntenants: {{a: 1{'0' * 50}}}\n",
                "FILE, row 2, column tenants.a: a is 100000000000000000...0000000000000000000, "
                "not a number from 1e-06 to 1000000",
            ),
            (
                "nodes: [{gpus: 1, count: 60000}, {gpus: 1, count: 60000}]\n",
                "FILE, row 1, column nodes[2].count: over 100000 nodes (give fewer)",
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
