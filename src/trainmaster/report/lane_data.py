"""What the script needs to draw jobs on nodes, as JSON in the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .dates import Calendar
from .lanes import NODES_PER_PAGE, Palette, Picture, hours_of
from .sizes import size_class


def payload(found: Sequence[Picture], palette: Palette, hour: int, calendar: Calendar) -> str:
    """What the script needs, as JSON that is safe inside a script element."""
    job_codes: dict[tuple[str, str, float], int] = {}
    policies: list[dict[str, Any]] = []
    for picture in found:
        origin = picture.lanes.from_s
        flat: list[float] = []
        for bar in picture.bars:
            segment = bar.segment
            job = job_codes.setdefault((segment.job_id, segment.tenant, segment.num_gpus), len(job_codes))
            start, end = round(bar.start_s - origin), round(bar.end_s - origin)
            flat += [bar.node, bar.first, bar.span, start, end - start, job, int(segment.kind == "overhead")]
        policies.append(
            {
                "policy": picture.policy,
                "from": origin,
                "hours": hours_of(picture.lanes),
                "nodes": [[node.name, node.gpus] for node in picture.lanes.nodes],
                "bars": flat,
            }
        )
    tenants = {
        tenant: code for code, tenant in enumerate(dict.fromkeys(tenant for _, tenant, _ in job_codes))
    }
    document = {
        "policies": policies,
        "tenants": [[tenant, palette.tenant(tenant)] for tenant in tenants],
        "jobs": [
            [job_id, tenants[tenant], num_gpus, size_class(num_gpus)]
            for job_id, tenant, num_gpus in job_codes
        ],
        "hour": hour,
        "start": calendar.start_s,
        "zone": calendar.zone,
        "page": NODES_PER_PAGE,
    }
    return script_json(document)


def script_json(document: Any) -> str:
    r"""JSON without the characters that could end a script element.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    compact = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return compact.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
