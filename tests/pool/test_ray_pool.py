import time
from collections import Counter

import psutil
import pytest
from pool_kit import (
    TASK,
    DyingSimulator,
    Make,
    Queue50,
    Troubled,
    essence,
    fake,
    fake_process,
    open_run,
    seeds_of,
    trials,
)

from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.pool import seed_work, trial_work
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeWorld, Fault
from evalkit.sim.fake.world import SEVENTHS

PLAIN = FakeWorld()
MISSES = Make(Queue50, options={"misses": True})


@pytest.fixture
def seeds(tmp_path):
    """Lists found by one worker in this process."""

    def find(count, world=PLAIN):
        return seeds_of(InlineCrew(1, fake(world)), tmp_path / "seeds", count)

    return find


def test_two_actors_do_what_one_process_does(tmp_path, crew, seeds):
    alone = seeds(30, SEVENTHS)
    reference = open_run(tmp_path / "alone", alone, 30)
    trials(InlineCrew(1, fake(SEVENTHS), MISSES), reference)

    pool = crew(2, fake(SEVENTHS), MISSES)
    together = seeds_of(pool, tmp_path / "elsewhere", 30)
    assert together[TASK, "demo_clean"].digest == alone[TASK, "demo_clean"].digest
    run = open_run(tmp_path / "together", together, 30)
    session = trials(pool, run)
    assert session.complete
    assert essence(run) == essence(reference)
    assert Counter(r.outcome for r in run.records().values()).keys() == {Outcome.SUCCESS, Outcome.FAILURE}
    assert {record.worker for record in run.records().values()} == {"worker-0", "worker-1"}
    assert all(record.timings.queue_s > 0 for record in run.records().values())
    assert sum(size * number for size, number in pool.batch_sizes.items()) == sum(
        record.policy_calls for record in run.records().values()
    )


def test_a_crashed_simulator_process_is_replaced_and_the_trial_repeated(tmp_path, crew, seeds):
    fault = Fault(kind="crash", seed=100002, step=1, times=1)
    memory = tmp_path / "memory"
    memory.mkdir()
    run = open_run(tmp_path / "r", seeds(6), 6)
    trials(crew(2, fake_process(FakeWorld(faults=(fault,), memory=memory)), Queue50), run)
    records = {record.spec.seed: record for record in run.records().values()}
    assert {record.outcome for record in records.values()} == {Outcome.SUCCESS}
    assert {seed: r.attempts for seed, r in records.items() if r.attempts > 1} == {100002: 2}
    [incident] = run.incidents()
    assert (incident["error"]["kind"], incident["error"]["signal"]) == ("crash", 11)


def test_a_hanging_simulator_is_killed_by_its_actor(tmp_path, crew, seeds, monkeypatch):
    monkeypatch.setattr(trial_work, "TRIAL_LIMIT_S", 2.0)
    monkeypatch.setattr(trial_work, "STEP_LIMIT_S", 0.0)
    world = FakeWorld(faults=(Fault(kind="hang", seed=100005, step=2),))
    run = open_run(tmp_path / "r", seeds(8), 8)
    started = time.monotonic()
    team = crew(2, fake_process(world, deadline_s=1e6), Queue50)
    trials(team, run)
    assert time.monotonic() - started < 60
    outcomes = {record.spec.seed: record for record in run.records().values()}
    hung = outcomes.pop(100005)
    assert (hung.outcome, hung.error.kind, hung.attempts) == (Outcome.SIM_ERROR, "hang", 3)
    assert {record.outcome for record in outcomes.values()} == {Outcome.SUCCESS}
    team.close()  # the simulators that wait idle belong to the crew: what must be gone is the hung one
    assert no_fake_workers()


def test_a_worker_that_hangs_itself_is_killed_by_the_driver(tmp_path, crew, seeds, monkeypatch):
    monkeypatch.setattr(trial_work, "TRIAL_LIMIT_S", 1.0)
    monkeypatch.setattr(trial_work, "STEP_LIMIT_S", 0.0)
    memory = tmp_path / "memory"
    memory.mkdir()
    fault = Fault(kind="hang", seed=100001, step=0, times=1)
    run = open_run(tmp_path / "r", seeds(4), 4)
    trials(crew(2, fake(FakeWorld(faults=(fault,), memory=memory)), Queue50), run, grace_s=4.0)
    assert {record.outcome for record in run.records().values()} == {Outcome.SUCCESS}
    assert [incident["error"]["kind"] for incident in run.incidents()] == ["hang"]


def test_a_dying_worker_is_replaced(tmp_path, crew, seeds):
    memory = tmp_path / "memory"
    memory.mkdir()
    run = open_run(tmp_path / "r", seeds(4), 4)
    trials(crew(2, Make(DyingSimulator, (100001, 1, memory)), Queue50), run)
    assert {record.outcome for record in run.records().values()} == {Outcome.SUCCESS}
    assert [(i["title"].split()[-1], i["error"]["kind"]) for i in run.incidents()] == [("100001", "worker_died")]


def test_a_policy_server_that_dies_once_is_replaced(tmp_path, crew, seeds):
    memory = tmp_path / "memory"
    memory.mkdir()
    run = open_run(tmp_path / "r", seeds(6), 6)
    trials(crew(2, fake(PLAIN), Make(Troubled, ("crash", 100002, 1, memory))), run)
    assert {record.outcome for record in run.records().values()} == {Outcome.SUCCESS}
    assert {incident["error"]["kind"] for incident in run.incidents()} == {"policy_server_died"}


def test_a_scene_that_always_kills_the_policy_server_is_found_out(tmp_path, crew, seeds):
    run = open_run(tmp_path / "r", seeds(6), 6)
    trials(crew(2, fake(PLAIN), Make(Troubled, ("crash", 100002))), run)
    outcomes = {record.spec.seed: record.outcome for record in run.records().values()}
    assert outcomes.pop(100002) is Outcome.HARNESS_ERROR
    assert set(outcomes.values()) == {Outcome.SUCCESS}


def test_a_hanging_policy_is_replaced_and_named(tmp_path, crew, seeds):
    run = open_run(tmp_path / "r", seeds(4), 4)
    trials(crew(2, fake(PLAIN), Make(Troubled, ("hang", 100001)), policy_limit_s=3.0), run)
    records = {record.spec.seed: record for record in run.records().values()}
    hung = records.pop(100001)
    assert (hung.outcome, hung.error.kind, hung.attempts) == (Outcome.POLICY_ERROR, "policy_timeout", 3)
    assert {record.outcome for record in records.values()} == {Outcome.SUCCESS}


def test_a_hanging_candidate_is_rejected(tmp_path, crew, monkeypatch):
    monkeypatch.setattr(seed_work, "SEED_LIMIT_S", 2.0)
    world = FakeWorld(faults=(Fault(kind="hang", seed=100001, step=-1),))
    found = seeds_of(crew(2, fake_process(world, deadline_s=1e6)), tmp_path, 3)[TASK, "demo_clean"]
    assert [(e.seed, e.kind) for e in found.entries] == [
        (100000, "ok"),
        (100001, "error"),
        (100002, "ok"),
        (100003, "ok"),
    ]


def test_a_policy_that_cannot_be_loaded_is_bad_input(crew):
    with pytest.raises(UserError, match=r"can't be loaded.*no_such_argument"):
        crew(1, fake(PLAIN), Make(Queue50, options={"no_such_argument": 1}))


def test_closing_leaves_no_simulator_behind(crew, tmp_path, seeds):
    pool = crew(2, fake_process(PLAIN), Queue50)
    run = open_run(tmp_path / "r", seeds(4), 4)
    trials(pool, run)
    assert not no_fake_workers(wait_s=0)
    pool.close()
    assert no_fake_workers()


def no_fake_workers(wait_s=10.0):
    """Whether no simulator process of ours is left, at the latest after a while."""
    until = time.monotonic() + wait_s
    while True:
        left = [
            process
            for process in psutil.process_iter(["cmdline"])
            if "evalkit.sim.fake.worker" in (process.info["cmdline"] or [])
        ]
        if not left or time.monotonic() > until:
            return not left
        time.sleep(0.1)
