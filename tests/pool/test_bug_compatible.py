"""``--bug-compatible``: one simulator a task, candidates in order, each accepted one built twice, nothing undone."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from pool_kit import Notes, Queue50
from variant_kit import REQUEST, Raises, Stays

from evalkit.aggregate.summary import summarise
from evalkit.cli.main import run_cli
from evalkit.cli.run_setup import prepare
from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.plan.seed_files import SeedFiles
from evalkit.pool.drive import find_seeds, run_trials
from evalkit.pool.inline import InlineCrew
from evalkit.report.rows import checkpoint_row
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.sim.fake.world import SEVENTHS
from evalkit.store.run import Run

TASKS = "click_bell,grab_roller"


class Remembering(FakeSimulator):
    """Its scenes depend on how many there were before in the process, as RoboTwin's clutter does."""

    diary: ClassVar[list[tuple[str, ...]]] = []
    made = 0

    def __init__(self, world=SEVENTHS):
        super().__init__(world)
        Remembering.made += 1
        self._name, self._before = f"process {Remembering.made}", 0

    def reset(self, scene):
        assert scene.history == "task"
        self._before += 1
        self.diary.append((self._name, scene.task, "scene", str(scene.seed)))
        built = super().reset(scene)
        return replace(built, state_digest=f"{scene.seed} after {self._before}")

    def expert(self, **options):
        self.diary.append((self._name, self._scene.task, "expert", str(self._scene.seed)))
        return super().expert(**options)

    def apply(self, actions, action_type):
        if self._steps == 0:
            self.diary.append((self._name, self._scene.task, "trial", str(self._scene.seed)))
        return super().apply(actions, action_type)

    def state_digest(self):
        return f"{super().state_digest()} after {self._before}"


@pytest.fixture(autouse=True)
def empty_diary():
    Remembering.diary.clear()
    Remembering.made = 0


@pytest.fixture
def repeat(tmp_path):
    """Runs ``--bug-compatible``, or goes on with such a run."""

    def run(policy=Stays, simulator=lambda name: Remembering(), workers=2, protocol="robotwin-2026-08", folder="run"):
        setup = prepare(replace(REQUEST, protocol=protocol, bug_compatible=True, tasks=TASKS))
        crew = InlineCrew(workers, simulator, policy)
        with SeedFiles(tmp_path / "seeds", "x", travelling=tmp_path / "none") as files:
            seeds = find_seeds(crew, setup.seed_needs(), files, Notes())
        found = Run.create(tmp_path / folder, setup.info(FINGERPRINT, seeds), setup.plan(FINGERPRINT, seeds))
        session = run_trials(crew, found, found.remaining(), setup.config_map, Notes())
        found.close()
        return found, session

    return run


def test_robotwins_order_in_one_process_for_each_task(repeat):
    run, session = repeat()
    assert session.complete
    diary = Remembering.diary
    of_bell = [entry for entry in diary if entry[1] == "click_bell"]
    processes = list(dict.fromkeys(entry[0] for entry in of_bell))
    assert len(processes) == 2  # one that finds the seeds, one that runs the trials
    assert not {entry[0] for entry in diary if entry[1] == "grab_roller"} & set(processes)
    trials = [entry[2:] for entry in of_bell if entry[0] == processes[1]]
    assert trials == [
        entry
        for seed in ("100000", "100001", "100002")
        for entry in (("scene", seed), ("expert", seed), ("scene", seed), ("trial", seed))
    ]
    searched = [entry[2:] for entry in of_bell if entry[0] == processes[0]]
    assert searched == [entry for entry in trials if entry[0] != "trial"]  # the scene of each trial is built there, too
    assert {spec.history for spec in run.plan} == {"task"}


def test_rejected_candidates_are_part_of_the_history(repeat):
    repeat(protocol="lingbot-va")  # from 10000, which the expert can't do
    scenes = [entry[2:] for entry in Remembering.diary if entry[0] == "process 3" and entry[2] != "trial"]
    assert scenes[:5] == [
        ("scene", "10000"),
        ("expert", "10000"),
        ("scene", "10001"),
        ("expert", "10001"),
        ("scene", "10001"),
    ]


def test_the_result_doesnt_depend_on_workers_or_on_where_it_was_interrupted(repeat, tmp_path):
    whole = {key: record.state_digest for key, record in repeat(workers=1, folder="a")[0].records().items()}
    cut, _ = repeat(workers=3, folder="b")
    lines = (cut.folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (cut.folder / "trials.jsonl").write_text("".join(lines[:2]))
    again, _ = repeat(workers=2, folder="b")
    assert {key: record.state_digest for key, record in again.records().items()} == whole
    assert len(again.history()) == 6  # those on record were made again, and not written again
    assert len({digest.split(" after ")[1] for digest in whole.values()}) == 3  # 2, 4 and 6 scenes before


def test_it_is_another_run_with_other_seeds_and_says_so(repeat, tmp_path):
    run, _ = repeat()
    plain = prepare(replace(REQUEST, protocol="robotwin-2026-08", tasks=TASKS))
    assert {path.parent.name for path in (tmp_path / "seeds").rglob("*.jsonl")} == {"own-split_in-history"}
    rule = plain.seed_needs()[0].rule
    assert rule.folder == ""
    assert run.info.bug_compatible
    summary = summarise(run)
    assert summary.configs[0].label.text == "?2c (robotwin-2026-08, bug-compatible)"
    assert any("--bug-compatible" in line for line in summary.not_leaderboard)
    assert checkpoint_row(summary)["bug_compatible"] == "true"
    assert "bug-compatible" in run.info.run_id


def test_an_error_ends_the_task_where_the_protocol_has_it_so(repeat):
    run, session = repeat(policy=Raises, protocol="robotwin-legacy", workers=1)
    outcomes = [record.outcome for record in run.records().values()]
    assert outcomes == [Outcome.POLICY_ERROR] * 2  # one in each task, and no trial after it
    assert "an error ended it, with 2 trials not run" in session.stop_reason
    counted, _ = repeat(policy=Raises, workers=1, folder="other")
    assert len(counted.records()) == 6


def test_a_broken_trial_doesnt_end_the_loop_but_a_dead_process_starts_it_anew(repeat):
    world = replace(SEVENTHS, faults=(Fault(kind="exception", seed=100001, step=0),))
    run, _ = repeat(simulator=lambda name: Remembering(world), workers=1)
    outcomes = [record.outcome for record in run.records().values()]
    assert outcomes == [Outcome.FAILURE, Outcome.SIM_ERROR, Outcome.FAILURE] * 2


def test_a_verdict_that_the_policy_has_changed_is_noticed(repeat):
    class Fickle(Remembering):
        """After a trial the expert fails, as a planner's sampler might have it."""

        def expert(self, **options):
            result = super().expert(**options)
            tried = any(entry[0] == self._name and entry[2] == "trial" for entry in self.diary)
            return replace(result, success=False, reason="plan_failed") if tried else result

    run, _ = repeat(simulator=lambda name: Fickle(), workers=1)
    kinds = [record.error.kind if record.error else "" for record in run.records().values()]
    assert kinds == ["", "history_differs", "history_differs"] * 2


def test_what_it_cant_be_combined_with():
    for changes, says in (
        ({"protocol": "lerobot"}, "protocol lerobot has accepted_seeds: unfiltered"),
        ({"repeats": 2}, "which has no --repeats 2"),
        ({"policy": "replay", "execute_steps": None}, "policy replay has the expert run once more"),
    ):
        with pytest.raises(UserError, match=says):
            prepare(replace(REQUEST, bug_compatible=True, **changes))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--policy noop,expert --bug-compatible", "--bug-compatible goes through a task with one policy"),
        ("--until-decided noop expert --bug-compatible", "--bug-compatible goes through a task with one policy"),
        ("--policy noop,expert --protocol robotwin-legacy", "protocol robotwin-legacy has errors: stops_task, and"),
        ("--policy noop --protocol x-vla", "protocol x-vla leaves trials_per_task to each run: give --trials"),
        ("--policy noop --protocol x-vl", "unknown protocol 'x-vl': did you mean x-vla"),
        ("--policy noop --protocol lerobot --trials 2", "protocol lerobot has no demo_randomized: give --mode c2c"),
    ],
)
def test_bad_input_is_one_line(capfd, arguments, says):
    assert run_cli(["run", *arguments.split(), "--backend", "fake"]) == 2
    errors = capfd.readouterr().err.strip()
    assert says in errors
    assert len(errors.splitlines()) == 1


def test_a_task_that_never_works_ends_the_search(repeat):
    hopeless = FakeWorld(unsolvable=lambda seed: True)
    with pytest.raises(UserError, match="201 in a row, to seed 100200, were rejected, the last for plan_failed"):
        repeat(policy=Queue50, simulator=lambda name: Remembering(hopeless))
