"""What a policy declares wrong is said in one line that names it, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainmaster.model.errors import PolicyError
from trainmaster.policies.base import Policy
from trainmaster.policies.parts.backfill import Greedy
from trainmaster.policies.parts.ordering import Order
from trainmaster.policies.parts.placement import Pack
from trainmaster.policies.registry import create, names


class Mine(Policy):
    """Nothing special."""

    name = "mine"


def declaring(**values: Any) -> type[Policy]:
    """A policy that sets these attributes."""

    def compose(self: Policy) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    return type("Mine", (Mine,), {"compose": compose})


def order(**values: Any) -> Order:
    made: Order = type("MyOrder", (Order,), values)()
    return made


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ordering": None}, "ordering is None, which has no method pending_key"),
        ({"ordering": "fifo"}, "ordering is the text 'fifo': give an object"),
        ({"ordering": Order}, "ordering is the class Order: write Order()"),
        ({"ordering": order(refresh=None)}, "which has no method refresh"),
        ({"ordering": order(preemptive="no")}, "preemptive of MyOrder is 'no': say True or False"),
        ({"ordering": order(stable=None)}, "stable of MyOrder is None: say True or False"),
        ({"placement": 7}, "placement is 7, which has no method find"),
        ({"walk": None}, "walk is None, which has no method plan"),
        ({"walk": Greedy}, "walk is the class Greedy: write Greedy()"),
        ({"placement": "pack"}, "placement is the text 'pack': give an object"),
        ({"placement": Pack}, "placement is the class Pack: write Pack()"),
        ({"by_tenant": "yes"}, "by_tenant is 'yes': say True or False"),
        ({"preemptive": 1}, "preemptive is 1: say True or False"),
        ({"relax": -5}, "relax is -5: give whole ns from 0, or None"),
        ({"relax": 5.0}, "relax is 5.0: give whole ns from 0, or None"),
        ({"relax": 10**40}, "give whole ns from 0, or None"),
        ({"min_run": -5}, "min_run is -5: give whole ns from 0"),
        ({"min_run": None}, "min_run is None: give whole ns from 0"),
        ({"round": "x"}, "round is 'x': give whole ns from 0"),
        ({"round": True}, "round is True: give whole ns from 0"),
        ({"settings": None}, "settings is None: give a dict of knobs"),
        ({"title": 7}, "title is 7: give text without control characters"),
        ({"name": "p\n"}, r"name is 'p\n': give text without control characters"),
        ({"stable": True}, "`stable` is read on the ordering: set it on Order"),
    ],
)
def test_what_is_declared_wrong_is_said(values: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        create(declaring(**values))
    assert str(caught.value).startswith("policy ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_that_is_not_set_up_by_the_base_class() -> None:
    class Other(Mine):
        def __init__(self, **arguments: Any) -> None:
            pass

    with pytest.raises(PolicyError) as caught:
        create(Other)
    what = "it has no `title`: Other.__init__ must call super().__init__(**arguments)"
    assert str(caught.value) == f"policy mine: {what}"


def test_what_is_declared_after_the_base_class_is_seen_too() -> None:
    class Other(Mine):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            self.relax = -1

    with pytest.raises(PolicyError, match="relax is -1"):
        create(Other)


def test_one_that_plans_by_itself_needs_no_walk() -> None:
    class Planner(Mine):
        def compose(self) -> None:
            self.walk = None  # type: ignore[assignment]

        def plan(self, view: Any) -> None:
            """Nothing."""

    assert create(Planner).walk is None


@pytest.mark.parametrize("code", ["raise GeneratorExit", "raise SystemExit(0)", "raise OverflowError"])
@pytest.mark.parametrize("where", ["at once", "compose"])
def test_what_its_code_raises_is_told(tmp_path: Path, code: str, where: str) -> None:
    file = tmp_path / "mine.py"
    head = "import trainmaster as tm\n"
    body = f"class Mine(tm.Policy):\n    name = 'mine'\n    def compose(self):\n        {code}\n"
    file.write_text(f"{head}{code}\n" if where == "at once" else head + body)
    with pytest.raises(Exception, match=r"(GeneratorExit|SystemExit|OverflowError)") as caught:
        create(str(file))
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("placement", ["pool", "pack", "spread"])
def test_ours_are_faultless(name: str, placement: str) -> None:
    assert create(name, placement=placement, relax_s=1e9).relax == 10**18
