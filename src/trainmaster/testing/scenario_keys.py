"""Every key of a case file, with its type and meaning: what the loader reads and editors check.

`scenario.schema.json` is made from these tables (`python -m trainmaster.testing.scenario_keys`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from trainmaster.testing.scenario_kinds import (
    ANYTHING,
    COUNT,
    COUNT_BOUND,
    FEATURES,
    FILES,
    FLAG,
    GPU_BOUND,
    GPUS,
    NAME,
    NAMES,
    NUMBER,
    RECLAIM,
    SPEED,
    STATE,
    TEXT,
    TIME,
    TIME_BOUND,
    TIMES,
    WHOLE,
    Key,
    Kind,
    Table,
    choice,
    list_of,
    mapping_of,
    one_or_mapping,
    schema_of,
    table_of,
)
from trainmaster.testing.scenario_model import GROUPS, PARTLY

SCHEMA_ID: Final = "https://json-schema.org/draft/2020-12/schema"

# -- a cluster and what runs on it -------------------------------------------------------------

JOB: Final[Table] = (
    Key("at", TIME, "when it is submitted, seconds; default 0"),
    Key("runs", TIME, "how long it really runs, seconds; no policy sees it", required=True),
    Key("gpus", GPUS, "GPUs of the whole gang, split over nodes as the placement likes; default 1"),
    Key("pods", TIMES, "P x G: P pods of G GPUs each, none of which spans nodes; instead of gpus"),
    Key("count", COUNT, "so many such jobs, NAME-0, NAME-1, …; default 1"),
    Key("every", TIME, "time between the submissions of one and the next of them; default 0"),
    Key("queue", NAME, "queue, tenant or account"),
    Key("user", NAME, "who submits it"),
    Key("priority", WHOLE, "larger is more urgent, unless `urgent: low`; default 0"),
    Key("type", NAMES, "acceptable GPU types; default any"),
    Key("limit", TIME, "the run time that its user declares"),
    Key("estimate", TIME, "what the oracle predicts instead of the true run time"),
    Key("preemptible", FLAG, "whether it may be stopped and resumed; default true"),
    Key("stops_in", TIME, "time from the request to stop until its GPUs are free; default costs.checkpoint"),
    Key("speed", mapping_of(SPEED), "progress per second by GPU type; default 1"),
    Key("min_pods", COUNT, "fewest pods with which it runs", "elastic"),
    Key("max_pods", COUNT, "most pods that it can use", "elastic"),
    Key("min_run", TIME, "it may not be stopped within this time of a start", "min-run"),
    Key("grace", TIME, "time that it is given to stop", "grace"),
    Key("deadline", TIME, "instant by which it must have ended", "deadlines"),
    Key("after", NAMES, "jobs that must finish first", "dependencies"),
    Key("not_before", TIME, "instant before which it must not start", "earliest-start"),
    Key("within", NAME, "level of the topology that the gang must not leave", "topology"),
    Key("labels", mapping_of(NAME), "labels that its nodes must have", "labels"),
    Key("retries", WHOLE, "how often it is tried again after a failure of its own", "retries"),
    Key("rejoin", FLAG, "whether it goes on with fewer nodes until one is replaced", "rejoin"),
)

NODE: Final[Table] = (
    Key("count", COUNT, "so many such nodes; default 1"),
    Key("name", NAME, "its name, or the start of the names of several; default node"),
    Key("gpus", COUNT, "whole GPUs of each", required=True),
    Key("type", NAME, "type of the GPUs"),
    Key("labels", mapping_of(NAME), "labels, such as {disk: nvme}"),
    Key("topology", NAMES, "where it stands: a name for each level"),
)

TREE: Final[Table] = (
    Key("levels", NAMES, "names of the levels of the topology, widest first"),
    Key("nodes", ANYTHING, "N x G, or a list of nodes", required=True),
)

QUEUE: Final[Table] = (
    Key("parent", NAME, "the queue above", "quota"),
    Key("guaranteed", GPUS, "GPUs that are its own whenever it wants them", "quota"),
    Key("limit", GPUS, "GPUs that it never exceeds", "quota"),
    Key("weight", NUMBER, "its part of what is left over, relative to its siblings'; default 1"),
    Key("priority", WHOLE, "siblings of a larger one are served first", "quota"),
    Key("reclaim", RECLAIM, "how far it may take GPUs back from others", "quota"),
    Key("hold", FLAG, "whether idle guaranteed GPUs are kept for its first job", "hold"),
)

STEP: Final[Table] = (
    Key("at", TIME, "when it happens, seconds", required=True),
    Key("cancel", NAMES, "these jobs are withdrawn by their users", refers="jobs"),
    Key("fail", NAMES, "these nodes fail; what runs on them is lost", refers="nodes"),
    Key("return", NAMES, "these nodes are back", refers="nodes"),
    Key("drain", NAMES, "these nodes take no new jobs", "drain", refers="nodes"),
    Key("resize", NAME, "this elastic job changes its size to `to` pods", "elastic", refers="jobs"),
    Key("to", COUNT, "pods after `resize`", "elastic"),
    Key("vanish", NAMES, "the processes of these jobs go away without a word", "auditor", refers="jobs"),
    Key("snapshot", FLAG, "the state is saved, and a scheduler restored from it goes on", "snapshot"),
    Key("restart", FLAG, "the scheduler starts again with an empty memory", "snapshot"),
)
VERBS: Final = tuple(key.name for key in STEP if key.name not in ("at", "to"))

STATE_LISTS: Final[Table] = tuple(
    Key(state, NAMES, f"these jobs are {state}", refers="jobs") for state in (*GROUPS, PARTLY)
)

MOMENT: Final[Table] = (
    Key("at", TIME, "the instant, seconds; everything that happens at it has happened", required=True),
    *STATE_LISTS,
    Key("nodes", mapping_of(NAMES), "the nodes that a job sits on, all of them", refers="jobs nodes"),
    Key("together", NAMES, "these jobs sit on the same node or nodes", refers="jobs"),
    Key("apart", NAMES, "no two of these jobs share a node", refers="jobs"),
    Key("gpus", mapping_of(GPU_BOUND), "GPUs that a job holds", refers="jobs"),
    Key(
        "free",
        one_or_mapping(GPU_BOUND),
        "GPUs that nobody holds, in all or by node",
        refers="nodes",
    ),
    Key("allocated", mapping_of(GPU_BOUND), "GPUs that the jobs of a queue hold", refers="queues"),
    Key("count", mapping_of(COUNT_BOUND), "number of jobs by state", refers="states"),
    Key(
        "evictions",
        one_or_mapping(COUNT_BOUND),
        "so far, in all or by job (0 if not named)",
        refers="jobs",
    ),
    Key(
        "reason",
        mapping_of(NAMES),
        "words in the reason why a job waits",
        "reasons",
        refers="jobs",
    ),
)

FINALLY: Final[Table] = (
    *STATE_LISTS,
    Key("start", mapping_of(TIME_BOUND), "when a job first started", refers="jobs"),
    Key("finish", mapping_of(TIME_BOUND), "when a job ended", refers="jobs"),
    Key("jct", mapping_of(TIME_BOUND), "time from a job's submission to its end", refers="jobs"),
    Key("makespan", TIME_BOUND, "when the last job ended"),
    Key("evictions", one_or_mapping(COUNT_BOUND), "in all, or by job (0 if not named)", refers="jobs"),
    Key(
        "starts",
        NAMES,
        "these jobs in the order of their first starts",
        refers="jobs",
    ),
    Key("evicted", NAMES, "the jobs in the order of the evictions, all of them", refers="jobs"),
    Key("evicted_queues", NAMES, "their queues, in that order", refers="queues"),
    Key("moves", COUNT_BOUND, "how often running jobs were moved", "migration"),
    Key(
        "reason",
        mapping_of(NAMES),
        "words in the reason why a job waits",
        "reasons",
        refers="jobs",
    ),
)

COSTS: Final[Table] = (
    Key("start", TIME, "of a first start, seconds; default 0"),
    Key("restore", TIME, "of a start after a stop; default 0"),
    Key("checkpoint", TIME, "of a stop; default 0"),
    Key("checkpoint_interval", TIME, "a running job saves its work this often; default 1800"),
)

_ENTRIES: Final = {"anyOf": [{"type": "string"}, schema_of(NODE)]}
_LIST: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": _ENTRIES}]}
_TREE: Final = schema_of(TREE)
_NODES: Final = Kind(
    ANYTHING.read,
    {"anyOf": [*_LIST["anyOf"], {**_TREE, "properties": {**_TREE["properties"], "nodes": _LIST}}]},
)

HEAD: Final[Table] = (
    Key("number", NAME, "number of the case"),
    Key("title", TEXT, "what is right, in one line", required=True),
    Key("story", TEXT, "what was seen, and why it is wrong"),
    Key("kind", choice("cluster", "reader", "process"), "what is tried; default cluster"),
    Key("needs", FEATURES, "features without which the case can't be run"),
)

CLUSTER: Final[Table] = (
    *HEAD,
    Key("cluster", _NODES, "N x G; a cluster file; or a list of nodes", required=True),
    Key("queues", Kind(ANYTHING.read, mapping_of(table_of(QUEUE)).schema), "who shares the cluster"),
    Key("reclaim", RECLAIM, "how far queues may take GPUs back from others", "quota"),
    Key("jobs", Kind(ANYTHING.read, mapping_of(table_of(JOB)).schema), "what is submitted", required=True),
    Key("steps", Kind(ANYTHING.read, list_of(table_of(STEP)).schema), "what happens from outside"),
    Key("expect", Kind(ANYTHING.read, list_of(table_of(MOMENT)).schema), "what must hold at instants"),
    Key("finally", Kind(ANYTHING.read, schema_of(FINALLY)), "what must hold at the end"),
    Key("never", Kind(ANYTHING.read, list_of(mapping_of(STATE)).schema), "jobs in states that never meet"),
    Key("until", TIME, "look no further than this instant; default until every job has ended"),
    Key("policies", NAMES, "policies; default every one that claims what the case needs"),
    Key("placement", list_of(choice("pack", "spread", "pool")), "how gangs are placed; default pack"),
    Key("predictor", NAME, "oracle, declared, history or noisy:SIGMA; default oracle"),
    Key("costs", table_of(COSTS), "time that starting and stopping take; default none"),
    Key("min_run", TIME, "minimum run time of the policies that have one; default theirs"),
    Key("round", TIME, "policies that can decide only at multiples of this"),
    Key("relax", TIME, "waiting time after which a job accepts any nodes"),
    Key("urgent", choice("high", "low"), "which priorities are more urgent; default high"),
    Key("migration", FLAG, "whether running jobs may be moved", "migration"),
    Key("seed", WHOLE, "of noise and of random policies; default 0"),
)

READER_EXPECT: Final[Table] = (
    Key("jobs", COUNT_BOUND, "jobs read"),
    Key("gpus", mapping_of(GPU_BOUND), "GPUs that a job asks for"),
    Key("runs", mapping_of(TIME_BOUND), "run time of a job"),
    Key("dropped", mapping_of(COUNT_BOUND), "rows dropped, by reason, all reasons"),
    Key("noted", mapping_of(COUNT_BOUND), "rows noted, by reason, all reasons"),
    Key("says", list_of(TEXT), "what the messages must contain"),
    Key("machines", mapping_of(mapping_of(WHOLE)), "GPUs by machine, by what is trusted: list or larger"),
)

READER: Final[Table] = (
    *HEAD,
    Key("files", FILES, "content by file name", required=True),
    Key("read", NAME, "the file that is the trace", required=True),
    Key("format", NAME, "its format; default by its header"),
    Key("expect", table_of(READER_EXPECT), "what the reader must report", required=True),
)

PROCESS_EXPECT: Final[Table] = (
    Key("exit", WHOLE, "exit code; default 0"),
    Key("same", NAMES, "files, stdout or stderr that must have the same bytes each time"),
    Key("contains", mapping_of(list_of(TEXT)), "what a file, stdout or stderr must contain"),
)

PROCESS: Final[Table] = (
    *HEAD,
    Key("files", FILES, "content by file name; there before the command runs"),
    Key("run", TEXT, "a command of trainmaster, run in the folder of the files", required=True),
    Key(
        "environments",
        list_of(mapping_of(NAME)),
        "what to set each time it is run; default: nothing, twice",
    ),
    Key("expect", table_of(PROCESS_EXPECT), "what must come of it", required=True),
)

KINDS: Final[Mapping[str, Table]] = {"cluster": CLUSTER, "reader": READER, "process": PROCESS}

_OWN: Final = ("steps", "expect", "finally", "never")
INHERITED: Final = tuple(key.name for key in CLUSTER if key.name not in _OWN)
"""Keys that a later part of a file takes over from the first where it doesn't name them."""


def schema() -> dict[str, Any]:
    """JSON Schema of a document of a case file."""
    described = {}
    for name, table in KINDS.items():
        found = schema_of(table)
        found["properties"]["kind"] = {"const": name, "description": f"a case about a {name}"}
        # A later part of a file takes what it doesn't say from the first.
        found["required"] = ["title"] if name == "cluster" else ["title", "kind"]
        described[name] = found
    return {
        "$schema": SCHEMA_ID,
        "title": "A scheduling case of Trainmaster",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in described],
        "$defs": described,
    }


def schema_text() -> str:
    """The content of `scenario.schema.json`."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    from pathlib import Path

    Path(__file__).with_name("scenario.schema.json").write_text(schema_text(), encoding="utf-8")
