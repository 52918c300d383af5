"""What a policy declares, looked at once after it was made: the engine takes it as it is."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from trainmaster.model.errors import PolicyError
from trainmaster.model.text import is_clean
from trainmaster.model.units import LONGEST_S, SECOND
from trainmaster.policies.base import Policy
from trainmaster.policies.parts.greedy import GreedyWalk
from trainmaster.policies.parts.preemption import Evict

_ATTRIBUTES = ("title", "settings", "relax", "by_tenant", "min_run", "round", "placement", "ordering", "walk")

_METHODS = {
    "ordering": ("pending_key", "challenge", "running_key", "apart", "next_change", "finished", "refresh"),
    "placement": ("find",),
    "walk": ("plan",),
}
_FLAGS = ("preemptive", "stable", "uses_estimates")


def refuse_faults(policy: Policy) -> None:
    """Look at the attributes and parts of a policy.

    Raises:
        PolicyError: one is missing or of the wrong kind, or two contradict each other.

    >>> from trainmaster.policies.fifo import Fifo
    >>> policy = Fifo()
    >>> policy.relax = -5
    >>> refuse_faults(policy)
    Traceback (most recent call last):
        ...
    trainmaster.model.errors.PolicyError: policy fifo: relax is -5: give whole ns from 0, or None
    """
    _refuse_missing(policy)
    _refuse_names(policy)
    _refuse_times(policy)
    _refuse_parts(policy)
    _refuse_contradictions(policy)


def _fault(policy: Policy, what: str) -> PolicyError:
    return PolicyError(f"policy {getattr(policy, 'title', policy.name)}: {what}")


def _refuse_missing(policy: Policy) -> None:
    missing = next((name for name in _ATTRIBUTES if not hasattr(policy, name)), None)
    if missing is not None:
        own = type(policy).__name__
        what = f"it has no `{missing}`: {own}.__init__ must call super().__init__(**arguments)"
        raise _fault(policy, what)


def _refuse_names(policy: Policy) -> None:
    for name in ("name", "title"):
        value = getattr(policy, name)
        if not isinstance(value, str) or not is_clean(value):
            raise _fault(policy, f"{name} is {value!r:.60}: give text without control characters")
    if not isinstance(policy.settings, Mapping):
        raise _fault(policy, f"settings is {policy.settings!r:.60}: give a dict of knobs")


def _refuse_times(policy: Policy) -> None:
    for name in ("relax", "min_run", "round"):
        value = getattr(policy, name)
        if value is None and name == "relax":
            continue
        if not (type(value) is int and 0 <= value <= LONGEST_S * SECOND):
            none = ", or None" if name == "relax" else ""
            raise _fault(policy, f"{name} is {value!r:.60}: give whole ns from 0{none}")


def _refuse_parts(policy: Policy) -> None:
    for part, methods in _METHODS.items():
        if part == "walk" and type(policy).plan is not Policy.plan:
            continue  # it plans by itself
        value = getattr(policy, part)
        if inspect.isclass(value):
            raise _fault(policy, f"{part} is the class {value.__name__}: write {value.__name__}()")
        if isinstance(value, str):
            raise _fault(policy, f"{part} is the text {value!r:.60}: give an object")
        for method in methods:
            if not callable(getattr(value, method, None)):
                raise _fault(policy, f"{part} is {value!r:.60}, which has no method {method}")
    owners = [(policy, "by_tenant"), (policy, "preemptive"), *((policy.ordering, flag) for flag in _FLAGS)]
    for owner, flag in owners:
        value = getattr(owner, flag, None)
        if not isinstance(value, bool):
            where = "" if owner is policy else f" of {type(owner).__name__}"
            raise _fault(policy, f"{flag}{where} is {value!r:.60}: say True or False")


def _refuse_contradictions(policy: Policy) -> None:
    """What is declared in the wrong place would be ignored without a word."""
    order = type(policy.ordering).__name__
    for name in ("uses_estimates", "stable"):
        if hasattr(policy, name):
            raise _fault(policy, f"`{name}` is read on the ordering: set it on {order}")
    if policy.ordering.preemptive and not policy.preemptive:
        raise _fault(policy, f"{order} preempts, so the policy must say `preemptive = True`")
    evicts = isinstance(policy.walk, GreedyWalk | Evict) and type(policy).plan is Policy.plan
    if evicts and not policy.ordering.preemptive:
        raise _fault(
            policy,
            f"it says `preemptive = True`, but under {order} nobody gives way: set it "
            "there too, or let `compose` choose a walk that stops nobody, such as Greedy()",
        )
