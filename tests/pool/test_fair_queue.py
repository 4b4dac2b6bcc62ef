"""The order of trials: even over tasks and configurations, long ones first; a task that never works is set aside."""

import pytest
from pool_kit import TASK, Notes, Queue50, fake, open_run, seeds_of, trials

from evalkit.core.outcome import Outcome
from evalkit.core.record import Timings, TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.pool.fair_queue import FairQueue
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeWorld, Fault
from evalkit.sim.fake.world import AT_RESET

SHORT, LONG = "click_bell", "stack_blocks_two"


def spec(task=SHORT, seed=100000, config="demo_clean", horizon_steps=400):
    return TrialSpec(
        backend="b",
        task=task,
        config=config,
        config_digest="c",
        seed=seed,
        instruction="",
        instruction_split="seen",
        horizon_steps=horizon_steps,
        action_type="qpos",
        execute_steps=10,
        policy="p",
        repeat=0,
    )


def plan(counts):
    """Trials of (task, configuration, horizon) strata."""
    return [
        spec(task, 100000 + number, config, horizon)
        for (task, config, horizon), count in counts.items()
        for number in range(count)
    ]


def strata(queue, number=None):
    order = []
    while (number is None or len(order) < number) and (found := queue.pop()) is not None:
        order.append((found.task, found.config))
    return order


def test_a_run_cut_short_anywhere_has_covered_all_strata_evenly():
    counts = {(SHORT, "demo_clean", 400): 5, (LONG, "demo_clean", 800): 5, (LONG, "demo_randomized", 800): 5}
    order = strata(FairQueue(plan(counts)))
    assert len(order) == 15
    for cut in range(1, 16):
        started = [order[:cut].count(stratum[:2]) for stratum in counts]
        assert max(started) - min(started) <= 1


def test_strata_of_different_size_end_together():
    counts = {(SHORT, "demo_clean", 400): 20, (LONG, "demo_clean", 800): 5}
    order = strata(FairQueue(plan(counts)))
    assert order[:5].count((LONG, "demo_clean")) == 1
    assert order[-5:].count((LONG, "demo_clean")) == 1


def test_the_longest_goes_first_in_each_round_and_what_was_measured_counts():
    counts = {(SHORT, "demo_clean", 400): 3, (LONG, "demo_clean", 800): 3}
    queue = FairQueue(plan(counts))
    assert strata(queue, 2) == [(LONG, "demo_clean"), (SHORT, "demo_clean")]
    for task, wall_s in ((SHORT, 9.0), (LONG, 2.0)):
        queue.learn(
            TrialRecord(
                spec=spec(task),
                outcome=Outcome.FAILURE,
                steps=1,
                policy_calls=1,
                success_step=None,
                timings=Timings(wall_s=wall_s),
            )
        )
    assert strata(queue, 2) == [(SHORT, "demo_clean"), (LONG, "demo_clean")]


def test_a_resumed_run_catches_up_with_what_lags_behind():
    whole = plan({(SHORT, "demo_clean", 400): 4, (LONG, "demo_clean", 800): 4})
    remaining = [found for found in whole if found.task == SHORT or found.seed > 100002]
    assert strata(FairQueue(remaining, whole), 3) == [(SHORT, "demo_clean")] * 3


def test_a_given_order_is_kept():
    counts = {(SHORT, "demo_clean", 400): 2, (LONG, "demo_clean", 800): 2, (SHORT, "demo_randomized", 400): 2}
    order = strata(FairQueue(plan(counts), task_order=[SHORT, LONG]))
    assert [task for task, _ in order] == [SHORT] * 4 + [LONG] * 2


def test_a_task_that_crashes_in_every_scene_is_set_aside_and_the_others_finish(tmp_path):
    tasks = (SHORT, LONG, "place_shoe")
    seeds = seeds_of(InlineCrew(1, fake(FakeWorld())), tmp_path, 12, tasks)
    run = open_run(tmp_path / "r", seeds, 12, tasks)
    faults = tuple(Fault(kind="exception", seed=spec.seed, step=AT_RESET, task=LONG) for spec in run.plan)
    session = trials(InlineCrew(1, fake(FakeWorld(faults=faults)), Queue50), run)
    assert not session.complete
    assert "stack_blocks_two demo_clean was set aside with 7 trials not run: its first 5 trials all" in (
        session.stop_reason
    )
    records = run.records().values()
    assert sum(record.outcome is Outcome.SUCCESS for record in records) == 24
    assert {record.spec.task for record in records if record.error} == {LONG}
    assert len(run.remaining()) == 7


def test_a_task_that_worked_once_is_not_set_aside(tmp_path):
    seeds = seeds_of(InlineCrew(1, fake(FakeWorld())), tmp_path, 12, (SHORT, LONG))
    run = open_run(tmp_path / "r", seeds, 12, (SHORT, LONG))
    faults = tuple(
        Fault(kind="exception", seed=spec.seed, step=AT_RESET, task=LONG) for spec in run.plan if spec.seed > 100000
    )
    assert trials(InlineCrew(1, fake(FakeWorld(faults=faults)), Queue50), run).complete
    assert run.remaining() == []


def test_a_trial_limit_of_ones_own_reaches_every_trial(tmp_path):
    seen = []

    class Limits(InlineCrew):
        def start(self, worker, job, attempt):
            seen.append(job.limit_s)
            super().start(worker, job, attempt)

    crew = Limits(1, fake(FakeWorld()), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 2), 2)
    seen.clear()
    trials(crew, run, trial_limit_s=7.0)
    assert seen == [7.0, 7.0]


@pytest.mark.parametrize("tasks", [(TASK,), (SHORT, LONG)])
def test_trials_start_in_plan_order_within_a_task(tmp_path, tasks):
    crew = InlineCrew(1, fake(FakeWorld()), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 4, tasks), 4, tasks)
    notes = Notes()
    trials(crew, run, notes)
    for task in tasks:
        assert [r.spec.seed for r in notes.trials if r.spec.task == task] == [100000, 100001, 100002, 100003]
