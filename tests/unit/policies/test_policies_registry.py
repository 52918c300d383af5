"""Policies by name, from files, with knobs; what is wrong is said in one line with the nearest name."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from trainmaster.model.errors import InputError, PolicyError
from trainmaster.model.units import LONGEST_S
from trainmaster.policies import Knob, Policy
from trainmaster.policies.fifo import Fifo
from trainmaster.policies.knobs import settings
from trainmaster.policies.las import Las
from trainmaster.policies.parts.backfill import Blocking, Easy, Greedy
from trainmaster.policies.parts.greedy import GreedyWalk
from trainmaster.policies.parts.preemption import Evict
from trainmaster.policies.registry import BUILT_IN, create, names, policy_class, split, title_of

MINE = '''
from trainmaster.policies import Knob, Policy

class Mine(Policy):
    """Mine."""
    name = "mine"
    knobs = (Knob("size", 3, "how large", low=1, high=9),)
'''


def error(specification: str, **how: object) -> str:
    """The one line of the error."""
    with pytest.raises(InputError) as caught:
        create(specification, **how)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestNames:
    def test_every_built_in_policy_can_be_made(self) -> None:
        for name in BUILT_IN:
            policy = create(name)
            assert (policy.name, policy.title) == (name, name)
            assert policy.source and type(policy).__doc__

    def test_the_nearest_name_is_suggested(self) -> None:
        assert error("strf") == "unknown policy 'strf' (did you mean 'srtf'?)"
        assert "known: drf, fifo, gittins" in error("zzzz")

    def test_knobs_inline_are_the_title(self) -> None:
        policy = create(" fifo( backfill = easy ) ")
        assert policy.title == "fifo( backfill = easy )"
        assert policy.settings["backfill"] == "easy"
        assert create("las()").title == "las"

    @pytest.mark.parametrize(
        "text", ["fifo(backfill=easy", "fifo)", "fifo(a=1)b", "()", "", "(backfill=easy)"]
    )
    def test_what_cannot_be_read(self, text: str) -> None:
        assert error(text) == f"can't read policy {text!r} (write name or name(knob=value, ...))"

    @pytest.mark.parametrize("text", ["las(queues=3,queues=4)", "las(queues=3, queues = 3)"])
    def test_a_knob_given_twice(self, text: str) -> None:
        assert error(text) == f"knob 'queues' stands twice in {text!r} (give it once)"

    def test_a_knob_without_a_value(self) -> None:
        assert error("fifo(easy)") == "can't read 'easy' in 'fifo(easy)' (write knob=value)"

    def test_lists_are_split_outside_of_parentheses(self) -> None:
        assert split("fifo,las(queues=3,limit=60) , drf") == ["fifo", "las(queues=3,limit=60)", "drf"]
        for text in ("", "fifo,", ",fifo", "fifo,,las"):
            with pytest.raises(InputError, match="an empty policy name"):
                split(text)


class TestKnobs:
    def test_unknown_knobs_and_values(self) -> None:
        assert error("fifo(backfil=easy)") == "policy fifo has no knob 'backfil' (did you mean 'backfill'?)"
        assert error("fifo(backfill=eazy)") == (
            "knob fifo.backfill: unknown value 'eazy' (did you mean 'easy'?)"
        )
        assert error("las(queues=two)") == (
            "knob las.queues: 'two' is not a number (whole number >= 1 and <= 64)"
        )
        assert error("las(queues=0)") == "knob las.queues: 0 is out of range (whole number >= 1 and <= 64)"
        assert error("las(queues=2.5)").startswith("knob las.queues: 2.5 is not a whole number")
        assert error("drf(preempt=perhaps)") == "knob drf.preempt: 'perhaps' is neither true nor false"

    @pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e400"])
    @pytest.mark.parametrize(
        "knob", ["las(queues", "las(min_run_s", "timeslice(quantum_s", "priority(ageing_s", "fifo(depth"]
    )
    def test_only_finite_numbers(self, knob: str, value: str) -> None:
        assert "is out of range" in error(f"{knob}={value})")

    @pytest.mark.parametrize(
        "specification",
        [
            "las(queues=64,factor=1000,limit=1e15)",
            "gittins(first_limit=1e15,levels=40)",
            f"timeslice(quantum_s={LONGEST_S})",
            f"priority(ageing_s={LONGEST_S})",
            f"srtf(min_run_s={LONGEST_S},round_s={LONGEST_S})",
        ],
    )
    def test_huge_values_within_range_work(self, specification: str) -> None:
        create(specification)

    @pytest.mark.parametrize(
        ("text", "value"), [("true", True), ("YES", True), ("0", False), ("off", False), (True, True)]
    )
    def test_truth_values(self, text: object, value: bool) -> None:
        assert Knob("k", True, "help").parse(text) is value

    def test_types_and_ranges_in_words(self) -> None:
        assert Knob("k", 1, "h", low=1).range == "whole number >= 1"
        assert Knob("k", 1.0, "h", low=0, high=2).range == "number >= 0 and <= 2"
        assert Knob("k", 1.0, "h", high=2).range == "number <= 2"
        assert Knob("k", True, "h").range == "true or false"
        assert Knob("k", "a", "h", choices=("a", "b")).range == "a | b"
        assert Knob("k", "a", "h").range == "text"

    def test_numbers_keep_the_knobs_type(self) -> None:
        assert type(Knob("k", 1, "h").parse("3.0")) is int
        assert type(Knob("k", 1.0, "h").parse(3)) is float
        assert Knob("k", "a", "h").parse(5) == "5"

    def test_settings_fill_in_defaults(self) -> None:
        knobs = (Knob("a", 1, "h"), Knob("b", "x", "h"))
        assert settings(knobs, {"b": "y"}, "p") == {"a": 1, "b": "y"}

    def test_overrides_lose_against_inline_knobs(self) -> None:
        given = {"las": {"queues": "5", "limit": "7"}, "fifo": {"backfill": "easy"}}
        policy = create("las(queues=3)", overrides=given)
        assert (policy.settings["queues"], policy.settings["limit"]) == (3, 7.0)
        assert create("fifo", overrides=given).settings["backfill"] == "easy"

    def test_other_defaults_count_where_there_is_such_a_knob(self) -> None:
        assert create("srtf", defaults={"min_run_s": 0.0}).min_run == 0
        assert create("fifo", defaults={"min_run_s": 0.0}).settings == {"backfill": "none", "depth": 100}
        assert create("srtf(min_run_s=5)", defaults={"min_run_s": 0.0}).min_run == 5 * 10**9


class TestParts:
    def test_walks(self) -> None:
        assert isinstance(create("fifo").walk, Blocking)
        assert isinstance(create("fifo(backfill=easy)").walk, Easy)
        assert isinstance(create("sjf").walk, Greedy)
        assert isinstance(create("srtf").walk, Evict)
        assert isinstance(create("srtf", placement="pool").walk, GreedyWalk)
        assert isinstance(create("drf(preempt=false)").walk, Greedy)

    def test_minimum_run_time_and_rounds_of_preemptive_policies(self) -> None:
        assert (create("las").min_run, create("las(round_s=360)").round) == (60 * 10**9, 360 * 10**9)
        assert (create("fifo").min_run, create("fifo").round) == (0, 0)
        assert "has no knob 'min_run_s'" in error("fifo(min_run_s=1)")

    def test_placement_and_relaxation(self) -> None:
        policy = create("las", placement="spread", relax_s=1.5)
        assert (policy.placement.name, policy.relax) == ("spread", 1_500_000_000)


class TestFiles:
    def write(self, folder: Path, text: str, name: str = "mine.py") -> str:
        path = folder / name
        path.write_text(text)
        return str(path)

    def test_a_file_with_one_policy(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, MINE)
        policy = create(f"{path}(size=5)")
        assert (policy.name, policy.title, policy.settings) == ("mine", f"{path}(size=5)", {"size": 5})
        assert create(path).title == path

    def test_one_of_several(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, MINE + "\nclass Other(Mine):\n    name = 'other'\n")
        assert create(f"{path}:Other(size=2)").name == "other"
        assert error(path) == f"{path}: expected one policy class, found Mine, Other (write FILE.py:Class)"
        assert error(f"{path}:Othr") == f"{path}: no policy class 'Othr' (did you mean 'Other'?)"

    def test_imported_policies_do_not_count(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "from trainmaster.policies.las import Las\n" + MINE)
        assert create(path).name == "mine"

    def test_a_file_may_define_dataclasses(self, tmp_path: Path) -> None:
        text = "from __future__ import annotations\nfrom dataclasses import dataclass\n" + MINE
        path = self.write(tmp_path, text + "\n@dataclass\nclass Part:\n    size: int = 3\n")
        assert create(path).name == "mine"

    def test_no_such_file(self, tmp_path: Path) -> None:
        path = str(tmp_path / "none.py")
        assert error(path) == f"{path}: no such file (give a policy's name or its Python file)"

    def test_a_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "folder.py"
        folder.mkdir()
        assert error(str(folder)).startswith(f"{folder}: can't be read")

    def test_not_python(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "x = 1\nclass Mine(\n")
        assert error(path).startswith(f"{path}, row 2: not valid Python")

    def test_not_text(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.py"
        path.write_bytes(b"\xff\xfe\0\1")
        assert error(str(path)).startswith(f"{path}")

    def test_without_a_policy(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "x = 1\n")
        assert error(path) == f"{path}: expected one policy class, found none (write FILE.py:Class)"

    @pytest.mark.parametrize("relative", [False, True])
    @pytest.mark.parametrize(
        ("line", "what"),
        [
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("raise SystemExit(0)", "SystemExit: 0"),
            ("open('/nowhere')", "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'"),
            ("open('/')", "IsADirectoryError: [Errno 21] Is a directory: '/'"),
            ("eval('(')", "SyntaxError: '(' was never closed (<string>, line 1)"),
            ("raise ValueError('two\\nlines')", "ValueError: two lines"),
            ("raise KeyboardInterrupt", None),
        ],
    )
    def test_a_file_that_fails_is_the_users_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool, line: str, what: str | None
    ) -> None:
        monkeypatch.chdir(tmp_path)
        path = self.write(tmp_path, f"x = 1\n\n{line}\n")
        path = "mine.py" if relative else path
        if what is None:
            with pytest.raises(KeyboardInterrupt):
                create(path)
        else:
            assert error(path) == f"{path}, row 3: {what}"

    def test_a_file_is_read_anew_and_leaves_nothing_beside_it(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, MINE)
        assert create(path).settings == {"size": 3}
        self.write(tmp_path, MINE.replace('"size", 3', '"size", 4'))
        assert create(path).settings == {"size": 4}
        assert [entry.name for entry in tmp_path.iterdir()] == ["mine.py"]

    def test_two_files_keep_their_own_modules(self, tmp_path: Path) -> None:
        first = policy_class(self.write(tmp_path, f"VALUE = 1\n{MINE}"))
        second = policy_class(self.write(tmp_path, f"VALUE = 2\n{MINE}", "other.py"))
        assert [vars(sys.modules[found.__module__])["VALUE"] for found in (first, second)] == [1, 2]

    @pytest.mark.parametrize("name", ["my (copy 2)/mine.py", "a:b/mine.py", "a=b/mi(ne.py", "x.py/mine.py"])
    @pytest.mark.parametrize("ending", ["", ":Mine", "(size=5)", ":Mine(size=5)"])
    def test_odd_paths(self, tmp_path: Path, name: str, ending: str) -> None:
        (tmp_path / name).parent.mkdir()
        path = self.write(tmp_path, MINE, name)
        policy = create(f"{path}{ending}", overrides={title_of(f"{path}{ending}"): {"size": 5}})
        assert policy.settings == {"size": 5}
        assert split(f"fifo,{path}{ending},las(queues=3,limit=6)")[1] == f"{path}{ending}"

    def test_a_comma_in_a_files_name(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, MINE, "my,mine.py")
        assert create(path).name == "mine"  # as one of a list in Python
        with pytest.raises(InputError) as caught:
            split("fifo,my,mine.py(size=3),las")
        assert str(caught.value).startswith("unknown policy 'my' before 'mine.py(size=3)' (")
        assert str(caught.value).endswith("or rename the file: a comma separates policies)")
        for text in ("fifo,mine.py,other.py", "las(queues=3),a.py:B(x=1),c.py", " fifo , mine.py , drf "):
            assert len(split(text)) == 3

    def test_control_characters_in_a_name(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, MINE, "mi\x1bne.py")
        assert error(path).startswith(f"policy {path!r} has a control character in its name")
        assert "\x1b" not in error("fi\x1bfo")
        path = self.write(
            tmp_path, MINE.replace('"size", 3, "how large", low=1, high=9', '"word", "x", "text"')
        )
        assert create(path, overrides={path: {"word": "y"}}).settings == {"word": "y"}
        assert "has a control character" in error(path, overrides={path: {"word": "\x1b[2J"}})
        made = type("Mine", (Policy,), {"name": "a\x1b[2J"})
        with pytest.raises(InputError, match="has a control character"):
            create(made)

    @pytest.mark.parametrize(
        ("body", "what"),
        [
            ("    def compose(self):\n        1 / 0\n", "ZeroDivisionError: division by zero"),
            ("    def compose(self):\n        raise SystemExit(0)\n", "SystemExit: 0"),
            ("    knobs = 5\n    preemptive = True\n", "TypeError: "),
        ],
    )
    def test_a_policy_that_can_not_be_made(self, tmp_path: Path, body: str, what: str) -> None:
        path = self.write(tmp_path, f"{MINE}\n{body}")
        with pytest.raises(PolicyError) as caught:
            create(path)
        assert str(caught.value).startswith(f"policy {path}: {what}")
        assert ", line " in str(caught.value)


class TestPlugins:
    def register(self, patch: pytest.MonkeyPatch, name: str, value: str) -> None:
        point = EntryPoint(name, value, "trainmaster.policies")
        patch.setattr("trainmaster.policies.registry.entry_points", lambda group: [point])

    def test_a_plugin_is_known_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.register(monkeypatch, "theirs", "trainmaster.policies.las:Las")
        assert policy_class("theirs") is Las
        assert names() == [*BUILT_IN, "theirs"]
        assert error("theris") == "unknown policy 'theris' (did you mean 'theirs'?)"

    def test_a_plugin_cannot_hide_a_built_in_policy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.register(monkeypatch, "fifo", "trainmaster.policies.las:Las")
        assert policy_class("fifo") is Fifo
        assert names() == list(BUILT_IN)

    def test_a_plugin_that_is_no_policy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.register(monkeypatch, "theirs", "trainmaster.model.job:Job")
        with pytest.raises(InputError, match=r"plugin trainmaster\.model\.job:Job is not a trainmaster"):
            policy_class("theirs")


def test_a_policy_is_greedy_and_first_come_first_served_unless_it_says_otherwise() -> None:
    class Plain(Policy):
        """Plain."""

        name = "plain"

    policy = Plain()
    assert isinstance(policy.walk, Greedy)
    assert (policy.ordering.preemptive, policy.by_tenant, policy.relax) == (False, False, None)
