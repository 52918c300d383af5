"""How reasons speak of GPUs, pods, nodes and times."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trainmaster.model.cluster import Cluster
from trainmaster.model.job import Request
from trainmaster.model.units import GPU, to_gpus, to_seconds

NAMED = 3
"""Names that a sentence lists at most."""


def gpus(milli: int) -> str:
    """An amount of GPUs.

    >>> gpus(8000), gpus(1000), gpus(250), gpus(1500)
    ('8 GPUs', '1 GPU', '0.25 GPU', '1.5 GPUs')
    """
    return f"{to_gpus(milli)} GPU{'' if 0 < milli <= GPU else 's'}"


def free(milli: int) -> str:
    """How many of them are free.

    >>> free(0), free(1000), free(12_000)
    ('none is free', '1 is free', '12 are free')
    """
    if not milli:
        return "none is free"
    return f"{to_gpus(milli)} {'is' if milli <= GPU else 'are'} free"


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "node"), count(1200, "node")
    ('1 node', '1,200 nodes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ordinal(number: int) -> str:
    """A place in a queue.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def names(found: Collection[str]) -> str:
    """A few names.

    >>> names(["a"]), names(["a", "b"]), names(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    shown = list(found)[:NAMED]
    if len(found) > NAMED:
        return f"{', '.join(shown)} and {len(found) - NAMED:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def span(ns: int) -> str:
    """A length of time, in a unit that people would use.

    >>> [span(seconds * 10**9) for seconds in (5, 600, 13_320, 400_000)]
    ['5 s', '10 min', '3.7 h', '4.6 days']
    """
    seconds = to_seconds(ns)
    for unit, size, most in (("s", 1.0, 120.0), ("min", 60.0, 7_200.0), ("h", 3_600.0, 172_800.0)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:,.1f} days"


def instant(at: int, now: int) -> str:
    """An instant of the clock, and how far away it is.

    >>> instant(1_234_567_890, 0), instant(413_411 * 10**9, 400_000 * 10**9)
    ('1.235 s (in 1.23 s)', '413,411 s (in 3.73 h)')
    """
    seconds = f"{round(to_seconds(at), 3):,.12g} s"
    return f"{seconds} (in {span(at - now)})" if at > now else seconds


def asks(request: Request, *, on_one: bool) -> str:
    """What a job asks.

    Args:
        on_one: whether it wants all of it on one node.

    >>> asks(Request(12_000, ("H100",), pods=3), on_one=False)
    '3 pods of 4 GPUs of type H100'
    >>> asks(Request(8000, within="rack"), on_one=True)
    '8 GPUs on one node'
    """
    one = on_one and request.gpus > GPU
    if request.pods is not None and request.pods > 1:
        text = f"{count(request.pods, 'pod')} of {gpus(request.pod)}"
    else:
        text = gpus(request.gpus)
    text += of_types(request.gpu_types)
    if request.labels:
        text += f" on nodes with {labels(request.labels)}"
    if one:
        return f"{text} on one node" if not request.labels else f"{text}, all on one"
    return f"{text} within one {request.within}" if request.within else text


def of_types(types: Sequence[str]) -> str:
    """The types of GPU that are asked for.

    >>> of_types(()), of_types(("A100", "H100"))
    ('', ' of type A100 or H100')
    """
    return f" of type {' or '.join(types)}" if types else ""


def labels(pairs: Sequence[tuple[str, str]]) -> str:
    """Labels as they stand in a cluster file.

    >>> labels([("disk", "nvme"), ("zone", "a")])
    'disk=nvme, zone=a'
    """
    return ", ".join(f"{key}={value}" for key, value in pairs)


def node_names(cluster: Cluster, nodes: Sequence[int]) -> str:
    """A few nodes by name."""
    return names([cluster.nodes[node].name for node in dict.fromkeys(nodes)])
