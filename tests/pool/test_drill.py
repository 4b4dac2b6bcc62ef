"""The drill itself: rows that must pass, as the command plays them, and rows that must not."""

import json
import os
import subprocess
import sys

import pytest

from evalkit.cli.main import run_cli
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.drill.ground import Notes, SimMaker, prepare_ground, work
from evalkit.drill.policy import DrillPolicyMaker
from evalkit.drill.row import Case, Played, judge
from evalkit.drill.run_drill import all_cases, case_of_file, choose
from evalkit.drill.show import markdown
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault

EVERY_TIME = ["kill", "shape", "start", "disk"]
"""Kinds of the command that run here, beside the driver's death (``test_kill_and_resume``); for the rest there is the
command itself."""


def drill(*arguments, folder):
    line = [sys.executable, "-m", "evalkit.cli.main", "drill", *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=600, env=dict(os.environ))
    assert done.returncode in (0, 1), done.stderr
    return done


@pytest.mark.parametrize("kinds", [["kill,shape,start"], ["disk"]], ids=["crew", "command"])
def test_faults_are_survived(tmp_path, kinds):
    done = drill("--only", *kinds, "--json", folder=tmp_path)
    rows = json.loads(done.stdout)
    assert {row["kind"] for row in rows} == set(kinds[0].split(","))
    assert [row["problems"] for row in rows] == [[]] * len(rows), done.stderr
    assert done.returncode == 0
    assert all(row["identical"] and row["left"] == [] and row["others"] >= 59 for row in rows)


def test_the_same_outcomes_for_any_number_of_workers_and_after_three_random_kills(tmp_path):
    tasks = "click_bell,place_shoe,stack_blocks_two"
    done = drill("--same-outcomes", "--tasks", tasks, "--trials", "4", "--json", folder=tmp_path)
    ways = json.loads(done.stdout)
    assert [way["name"] for way in ways] == [
        "in this process",
        "1 worker",
        "2 workers",
        "4 workers",
        "2 workers and 3 random kills",
    ]
    assert {way["trials"] for way in ways} == {12}
    assert [way["differing"] for way in ways] == [[]] * 5
    assert len(ways[-1]["killed"]) == 3
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return prepare_ground(tmp_path_factory.mktemp("ground"))


def played(ground, name, world, policy=None):
    run = ground.open(name)
    work(InlineCrew(2, lambda worker: FakeSimulator(world), policy or DrillPolicyMaker()), run, Notes())
    return Played(run=run, happened="")


def case(**values):
    return Case(kind="k", fault="f", play=lambda ground, mark: None, **values)


def test_the_undisturbed_run_has_both_outcomes(ground):
    outcomes = [record.outcome for record in ground.reference.records().values()]
    assert len(outcomes) == 60
    assert {str(outcome) for outcome in outcomes} == {"success", "failure"}


def test_a_row_fails_if_other_trials_come_out_otherwise(ground):
    from dataclasses import replace

    from evalkit.drill.ground import WORLD

    row = judge(ground, case(), played(ground, "other", replace(WORLD, success_after_steps=13, step_s=0.0)), 1.0)
    assert not row.passed
    assert "the table isn't the undisturbed run's" in row.problems


def test_a_row_fails_if_the_fault_is_recorded_as_another(ground):
    from dataclasses import replace

    from evalkit.drill.ground import WORLD

    fault = Fault(kind="exception", seed=100002, step=3, task="click_bell")
    was = played(ground, "kind", replace(WORLD, step_s=0.0, faults=(fault,)))
    right = judge(ground, case(ends={("click_bell", 100002): "sim_error task_code"}), was, 1.0)
    assert right.passed
    assert (right.others, right.recorded) == (59, "sim_error task_code")
    wrong = judge(ground, case(ends={("click_bell", 100002): "sim_error hang"}), was, 1.0)
    assert wrong.problems == ("recorded as sim_error task_code instead of sim_error hang",)
    unexpected = judge(ground, case(), was, 1.0)
    assert "1 trials without a fault have no score" in unexpected.problems


def test_a_row_fails_if_something_is_left_behind(ground):
    was = Played(run=ground.reference, happened="", left=("simulator",))
    assert judge(ground, case(), was, 1.0).problems == ("left behind: simulator",)


def test_the_table_has_a_line_for_each_row(ground):
    row = judge(ground, case(), Played(run=ground.reference, happened="h"), 1.4)
    assert markdown([row]).splitlines()[2] == "| f | h | nothing | 60 of 60 | identical | nothing | 1 |"


def test_every_kind_that_runs_here_is_one_of_the_drills(capsys):
    assert {*EVERY_TIME} <= {one.kind for one in all_cases()}
    assert run_cli(["drill", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(all_cases())


def test_bad_input_is_named(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean hang"):
        choose(["hangs"])
    path = tmp_path / "faults.yaml"
    path.write_text("faults: [{where: sim, kind: hang, seed: 5}]")
    with pytest.raises(UserError, match="any task seed 5 isn't a trial of the drill: tasks click_bell"):
        case_of_file(path)
    path.write_text("faults: [{where: sim, kind: hang, seed: 100002, attempts: 1}]")
    assert len(case_of_file(path).free) == 3
    assert run_cli(["drill", "--backend", "robotwin"]) == 2


def test_the_drills_simulators_have_no_deadline_of_their_own(tmp_path):
    sim = SimMaker(FakeWorld(), tmp_path)("worker-0")
    assert sim._deadline_s > 1e5
