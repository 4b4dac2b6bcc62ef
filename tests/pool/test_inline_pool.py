from collections import Counter

import pytest
from pool_kit import TASK, Broken, Make, Notes, Queue50, Troubled, WrongWidth, essence, fake, open_run, seeds_of, trials

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.outcome import Outcome
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeWorld, Fault
from evalkit.sim.fake.world import AT_RESET, SEVENTHS, always
from evalkit.store.run import open_run as read_run

PLAIN = FakeWorld()


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_seeds_are_those_of_one_worker(tmp_path, workers):
    crew = InlineCrew(workers, fake(SEVENTHS), newest_first=workers > 1)
    found = seeds_of(crew, tmp_path, 100)[TASK, "demo_clean"]
    assert found.accepted[-1].seed == 100159
    assert found.rejections == {"plan_failed": 37, "unstable": 23}
    assert [entry.seed for entry in found.entries] == list(range(100000, 100160))
    again = seeds_of(InlineCrew(1, Make(Broken)), tmp_path, 100)[TASK, "demo_clean"]
    assert again == found  # from the file: no simulator was needed


def test_instruction_belongs_to_seed_and_split(tmp_path):
    first = seeds_of(InlineCrew(1, fake(PLAIN)), tmp_path / "a", 12)[TASK, "demo_clean"]
    second = seeds_of(InlineCrew(3, fake(PLAIN), newest_first=True), tmp_path / "b", 12)[TASK, "demo_clean"]
    assert [e.instruction for e in first.accepted] == [e.instruction for e in second.accepted]
    assert all("(seen wording" in e.instruction for e in first.accepted)
    assert len({e.instruction.split("wording")[1] for e in first.accepted}) > 3


@pytest.mark.parametrize(("workers", "newest_first"), [(1, False), (3, True), (4, False)])
def test_a_stateful_policy_serves_any_number_of_workers(tmp_path, workers, newest_first):
    crew = InlineCrew(workers, fake(PLAIN), Queue50, newest_first=newest_first)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 20), 20)
    assert trials(crew, run).complete
    assert Counter(record.outcome for record in run.records().values()) == {Outcome.SUCCESS: 20}


def test_the_stateful_policy_would_fail_without_its_reset(tmp_path):
    crew = InlineCrew(1, fake(PLAIN), Make(Queue50, options={"resets": False}))
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 20), 20)
    trials(crew, run)
    assert sum(record.outcome is Outcome.SUCCESS for record in run.records().values()) < 10


def test_order_and_worker_count_leave_no_trace(tmp_path):
    tasks = (TASK, "place_shoe", "stack_blocks_two")
    results = []
    for name, workers, newest_first in (("a", 1, False), ("b", 2, True), ("c", 3, False)):
        policy = Make(Queue50, options={"misses": True})
        crew = InlineCrew(workers, fake(SEVENTHS), policy, newest_first=newest_first)
        run = open_run(tmp_path / name, seeds_of(crew, tmp_path, 6, tasks), 6, tasks)
        remaining = run.remaining() if name != "b" else run.remaining()[::-1]
        trials(crew, run, remaining=remaining)
        results.append(essence(run))
    assert results[0] == results[1] == results[2]
    assert len({outcome for outcome, *_ in results[0].values()}) == 2


def test_a_long_task_goes_first(tmp_path):
    tasks = (TASK, "stack_blocks_two")
    crew = InlineCrew(1, fake(PLAIN), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 2, tasks), 2, tasks)
    notes = Notes()
    trials(crew, run, notes)
    assert notes.trials[0].spec.task == "stack_blocks_two"


def test_nan_in_one_scene_spoils_no_other(tmp_path):
    crew = InlineCrew(2, fake(PLAIN), Make(Troubled, ("nan", 100002)))
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 10), 10)
    trials(crew, run)
    errors = [record for record in run.records().values() if record.error]
    assert [(r.spec.seed, r.outcome, r.error.kind) for r in errors] == [
        (100002, Outcome.POLICY_ERROR, "action_nonfinite")
    ]
    assert "dimension 3" in errors[0].error.message
    assert len(run.records()) == 10


def test_a_wrong_action_width_ends_the_run_after_one_trial(tmp_path):
    crew = InlineCrew(1, fake(PLAIN), WrongWidth)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 20), 20)
    session = trials(crew, run)
    assert not session.complete
    assert "(8, 16)" in session.stop_reason
    [record] = run.records().values()
    assert (record.outcome, record.steps, record.error.kind) == (Outcome.POLICY_ERROR, 0, "action_shape")
    assert len(run.remaining()) == 19


def test_a_failed_attempt_is_repeated_on_the_same_seed(tmp_path):
    world = FakeWorld(faults=(Fault(kind="exception", seed=100002, step=1, times=1),), memory=tmp_path)
    crew = InlineCrew(1, fake(world), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path / "s", 5), 5)
    notes = Notes()
    trials(crew, run, notes)
    records = {record.spec.seed: record for record in run.records().values()}
    assert {seed: record.attempts for seed, record in records.items()} == {
        **dict.fromkeys(records, 1),
        100002: 2,
    }
    assert all(record.outcome is Outcome.SUCCESS for record in records.values())
    assert len(notes.incidents) == len(run.incidents()) == 1


def test_a_poisonous_trial_is_missing_after_three_attempts(tmp_path):
    world = FakeWorld(faults=(Fault(kind="exception", seed=100002, step=1),))
    crew = InlineCrew(2, fake(world), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 5), 5)
    assert trials(crew, run).complete
    outcomes = {record.spec.seed: record.outcome for record in run.records().values()}
    assert outcomes.pop(100002) is Outcome.SIM_ERROR
    assert set(outcomes.values()) == {Outcome.SUCCESS}
    [missing] = [record for record in run.records().values() if record.error]
    assert (missing.attempts, missing.error.kind) == (3, "task_code")
    assert run.remaining() == []
    assert len(run.remaining(retry_errors=True)) == 1


def test_a_seed_that_is_unstable_here_is_missing_and_no_other_takes_its_place(tmp_path):
    seeds = seeds_of(InlineCrew(1, fake(PLAIN)), tmp_path, 3)
    crew = InlineCrew(1, fake(FakeWorld(unstable=always)), Queue50)
    run = open_run(tmp_path / "r", seeds, 3)
    trials(crew, run)
    assert {record.spec.seed for record in run.records().values()} == {100000, 100001, 100002}
    assert {record.error.kind for record in run.records().values()} == {"seed_invalid"}
    assert {record.attempts for record in run.records().values()} == {1}


def test_a_broken_machine_ends_the_run(tmp_path):
    seeds = seeds_of(InlineCrew(1, fake(PLAIN)), tmp_path, 30)
    run = open_run(tmp_path / "r", seeds, 30)
    session = trials(InlineCrew(1, Make(Broken), Queue50), run)
    assert not session.complete
    assert "no Vulkan device" in session.stop_reason
    assert len(run.records()) == 5


def test_a_broken_machine_ends_the_seed_search(tmp_path):
    with pytest.raises(HarnessError, match="failed 3 times: setup: no Vulkan device"):
        seeds_of(InlineCrew(1, Make(Broken)), tmp_path, 3)


def test_a_missing_asset_ends_the_seed_search_with_its_name(tmp_path):
    world = FakeWorld(broken="FileNotFoundError: assets/objects/050_bell")
    with pytest.raises(UserError, match="assets/objects/050_bell"):
        seeds_of(InlineCrew(2, fake(world)), tmp_path, 3)


def test_a_candidate_that_always_crashes_is_rejected(tmp_path):
    class Crashing(Broken):
        def reset(self, scene):
            from evalkit.core.errors import SimulatorError
            from evalkit.sim.fake import FakeSimulator

            if scene.seed == 100001:
                raise SimulatorError("crash", "the simulator process ended with code -11", signal=11)
            return FakeSimulator.reset(self, scene)

    notes = Notes()
    found = seeds_of(InlineCrew(1, Make(Crashing)), tmp_path, 3, observer=notes)[TASK, "demo_clean"]
    assert [(e.seed, e.accepted) for e in found.entries] == [
        (100000, True),
        (100001, False),
        (100002, True),
        (100003, True),
    ]
    assert found.entries[1].reason.startswith("error: crash")
    assert len(notes.incidents) == 3


def test_stop_loses_only_what_is_in_flight(tmp_path):
    crew = InlineCrew(1, fake(PLAIN), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 10), 10)
    notes = Notes()
    session = trials(crew, run, notes, stop=lambda: len(notes.trials) >= 4)
    assert session.interrupted
    assert not session.complete
    assert len(read_run(tmp_path / "r").remaining()) == 6


def test_a_torn_log_is_mended_by_running_the_torn_trial_again(tmp_path):
    seeds = seeds_of(InlineCrew(1, fake(SEVENTHS)), tmp_path, 100)
    policy = Make(Queue50, options={"misses": True})
    whole = open_run(tmp_path / "whole", seeds, 100)
    trials(InlineCrew(1, fake(SEVENTHS), policy), whole)

    notes = Notes()
    torn = open_run(tmp_path / "torn", seeds, 100)
    trials(InlineCrew(1, fake(SEVENTHS), policy), torn, notes, stop=lambda: len(notes.trials) >= 38)
    log = tmp_path / "torn/trials.jsonl"
    log.write_bytes(log.read_bytes()[:-200])
    again = Notes()
    resumed = open_run(tmp_path / "torn", seeds, 100)
    assert trials(InlineCrew(2, fake(SEVENTHS), policy), resumed, again).complete
    assert len(again.trials) == 63
    assert len({record.key for record in resumed.history()}) == len(resumed.history()) == 100
    assert essence(resumed) == essence(whole)


def test_times_are_filled(tmp_path):
    world = FakeWorld(setup_s=0.01, faults=(Fault(kind="slow", seed=100000, step=AT_RESET, slow_s=0.0),))
    crew = InlineCrew(1, fake(world), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 1), 1)
    session = trials(crew, run)
    [record] = run.records().values()
    assert record.timings.setup_s == 0.01
    assert record.timings.wall_s > record.timings.simulator_s > 0.01
    assert record.worker == "worker-0"
    assert record.node
    assert record.started_at.endswith("+00:00")
    assert 0 < session.efficiency <= 1
