"""Two simulators interleaved in one process must not influence each other.

Usage: interleaved.py TRACE. Prints [changes from one simulator to the other, whether
each gave what it gives alone].
"""

from __future__ import annotations

import json
import sys
import threading
from hashlib import sha256
from itertools import pairwise

import trainmaster as tm

TURN_S = 0.0002
"""How long a thread may run while the other waits."""


def main() -> None:
    """Simulate two policies one after the other, then in two threads."""
    trace = tm.load_trace(sys.argv[1])
    policies = ("srtf", "las")
    alone = {policy: fingerprint(trace, policy) for policy in policies}
    turns: list[str] = []
    together: dict[str, str] = {}

    def work(policy: str) -> None:
        together[policy] = fingerprint(trace, policy, turns)

    sys.setswitchinterval(TURN_S)
    threads = [threading.Thread(target=work, args=(policy,)) for policy in policies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = sum(one != other for one, other in pairwise(turns))
    json.dump([changes, together == alone and changes > 0], sys.stdout)


def fingerprint(trace: tm.Trace, policy: str, turns: list[str] | None = None) -> str:
    """Hash of all that a run says about jobs; `turns` is told whose turn it was now and then."""

    def progress(done: int, total: int) -> None:
        if turns is not None:
            turns.append(policy)

    result = tm.simulate(trace, tm.Cluster.homogeneous(32, 8), policy, progress=progress)
    return sha256(result.jobs.tobytes()).hexdigest()


if __name__ == "__main__":
    main()
