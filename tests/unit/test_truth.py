"""Nobody but the executor and the oracle learns how long a job really runs."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

import trainmaster as tm
from trainmaster.cli.simulate import simulate as command
from trainmaster.model.errors import PolicyError
from trainmaster.model.job import Job
from trainmaster.model.ports import JobView, Predictor
from trainmaster.policies.registry import create, names
from trainmaster.predict import Declared, History, Oracle, make_predictor
from trainmaster.sim.options import Options
from trainmaster.sim.run import Setup, run
from trainmaster.testing.schedules import SealedDurations
from trainmaster.traces import Truth

NODES = 2


EXECUTOR = "trainmaster.sim.virtual_cluster"


def guarded(policy: str, predictor: str, *readers: str, placement: str = "pack") -> SealedDurations:
    """Simulate with guarded durations; returns them."""
    trace = tm.synthesize("helios-like", days=1, load=1.3, nodes=NODES, seed=2)
    truth = SealedDurations([truth.duration or 0 for truth in trace.truths], readers)
    options = Options(predictor=predictor, placement=placement)
    setup = Setup(trace.jobs, truth, tm.Cluster.homogeneous(NODES, 8), policy, options)
    outcome = run(setup, create(policy, placement=placement))
    assert outcome.ledger.status == ["finished"] * len(trace)
    return truth


@pytest.mark.parametrize("predictor", ["history", "declared"])
@pytest.mark.parametrize("policy", [*names(), "fifo(backfill=easy)", "fifo(backfill=conservative)"])
def test_only_the_executor_reads_the_truth(policy: str, predictor: str) -> None:
    truth = guarded(policy, predictor, EXECUTOR)
    assert truth.reads == len(truth), "once, when a job first starts"


@pytest.mark.parametrize("placement", ["pool", "spread"])
def test_under_other_placements_too(placement: str) -> None:
    guarded("srtf", "history", EXECUTOR, placement=placement)


@pytest.mark.parametrize("predictor", ["oracle", "noisy:0.3"])
def test_an_oracle_reads_it_and_the_guard_sees_that(predictor: str) -> None:
    with pytest.raises(
        PolicyError, match=r"AssertionError: trainmaster\.predict\.predictors reads a true duration"
    ):
        guarded("srtf", predictor, EXECUTOR)
    truth = guarded("srtf", predictor, EXECUTOR, "trainmaster.predict.predictors")
    assert truth.reads > len(truth)


def test_the_default_predictor_is_not_the_oracle() -> None:
    assert Options().predictor == "history"
    assert inspect.signature(command).parameters["predictor"].default == "history"
    trace = tm.synthesize("philly-like", days=0.2, load=0.5, nodes=NODES, seed=0)
    result = tm.simulate(trace, tm.Cluster.homogeneous(NODES, 8), "srtf")
    assert result.summary["predictor"] == "history"


@pytest.mark.parametrize(("name", "kind"), [("history", History), ("declared", Declared)])
def test_these_predictors_do_not_keep_the_truth(name: str, kind: type[Predictor]) -> None:
    def duration(job: Job) -> int:
        raise AssertionError(job.id)

    predictor = make_predictor(name, duration)
    assert type(predictor) is kind
    held = [predictor]
    for thing in held:  # whatever it holds, and what that holds
        held += [value for value in getattr(thing, "__dict__", {}).values() if value not in held]
    assert duration not in held
    job = tm.synthesize("philly-like", days=0.2, load=0.5, nodes=NODES, seed=0).jobs[0]
    assert predictor.predict(job, 0, 0).total > 0
    with pytest.raises(AssertionError):
        Oracle(duration).predict(job, 0, 0)


def test_a_job_and_what_a_policy_sees_of_it_have_no_field_for_it() -> None:
    truth = {field.name for field in fields(Truth)}
    assert truth == {"duration", "status", "queue"}
    for kind in (Job, JobView):
        assert not truth & set(dir(kind))
