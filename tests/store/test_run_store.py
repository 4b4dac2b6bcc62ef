import json
import multiprocessing
from dataclasses import replace

import pytest

from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.core.record import ErrorInfo, TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.store.info import ConfigInfo, PolicyInfo, RunInfo
from evalkit.store.run import Run, open_run


def spec(seed=100000, **changes):
    values = {
        "backend": "b",
        "task": "click_bell",
        "config": "demo_clean",
        "config_digest": "c",
        "seed": seed,
        "instruction": "do it",
        "instruction_split": "seen",
        "horizon_steps": 400,
        "action_type": "qpos",
        "execute_steps": 8,
        "policy": "p",
    }
    return TrialSpec(**{**values, **changes})


def record(trial, outcome=Outcome.SUCCESS, **changes):
    return TrialRecord(spec=trial, outcome=outcome, steps=7, policy_calls=1, success_step=None, **changes)


def info(**changes):
    policy = PolicyInfo(
        adapter="noop",
        digest="p",
        checkpoint="/old/place",
        checkpoint_digest=None,
        step=None,
        execute_steps=8,
        action_type="qpos",
        device="cpu",
        privileged=False,
    )
    values = {
        "run_id": "r",
        "created_at": "2026-01-01T00:00:00+00:00",
        "evalkit_version": "0",
        "policy": policy,
        "card": None,
        "configs": {"demo_clean": ConfigInfo(digest="c", split="seen", label="?2c", label_reasons=("no card",))},
        "tasks": ("click_bell",),
        "trials_per_task": 3,
        "backend": {"backend": "fake", "semantics": 1},
        "seed_lists": {"click_bell/demo_clean": "s"},
    }
    return RunInfo(**{**values, **changes})


PLAN = [spec(100000), spec(100001), spec(100002)]


def test_info_survives_json():
    assert RunInfo.from_json(json.loads(json.dumps(info().to_json()))) == info()


def test_info_of_a_newer_schema_is_refused():
    with pytest.raises(ValueError, match="newer"):
        RunInfo.from_json({**info().to_json(), "schema": 99})


def test_remaining_is_plan_minus_records(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[1]))
    run.close()
    again = open_run(tmp_path / "r")
    assert again.remaining() == [PLAN[0], PLAN[2]]
    assert list(again.records()) == [PLAN[1].key]
    assert again.info == info()
    assert again.plan == tuple(PLAN)


def test_same_identity_is_taken_up_and_keeps_its_manifest(tmp_path):
    Run.create(tmp_path / "r", info(), PLAN)
    moved = replace(info().policy, checkpoint="/new/place")
    again = Run.create(tmp_path / "r", info(created_at="2027-01-01T00:00:00+00:00", policy=moved), PLAN)
    assert again.info == info()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"repeats": 2}, "repeats: 1 there, 2 now"),
        ({"seed_lists": {"click_bell/demo_clean": "t"}}, "seed_lists.click_bell/demo_clean"),
        ({"backend": {"backend": "fake", "semantics": 2}}, "backend.semantics: 1 there, 2 now"),
        ({"policy": replace(info().policy, digest="q")}, "policy.digest"),
    ],
)
def test_another_identity_is_refused_by_name(tmp_path, change, named):
    Run.create(tmp_path / "r", info(), PLAN)
    with pytest.raises(UserError, match=named):
        Run.create(tmp_path / "r", info(**change), PLAN)


def test_another_plan_is_refused(tmp_path):
    Run.create(tmp_path / "r", info(), PLAN)
    with pytest.raises(UserError, match=r"plan\.jsonl"):
        Run.create(tmp_path / "r", info(), PLAN[:2])


def test_plan_lost_between_two_writes_is_written_again(tmp_path):
    Run.create(tmp_path / "r", info(), PLAN)
    (tmp_path / "r/plan.jsonl").unlink()
    with pytest.raises(UserError, match=r"plan\.jsonl"):
        open_run(tmp_path / "r")
    Run.create(tmp_path / "r", info(), PLAN)
    assert open_run(tmp_path / "r").plan == tuple(PLAN)


def test_foreign_folder_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds files"):
        Run.create(tmp_path, info(), PLAN)


def test_a_trial_planned_twice_is_refused(tmp_path):
    with pytest.raises(UserError, match="twice"):
        Run.create(tmp_path / "r", info(), [*PLAN, PLAN[0]])


def test_torn_line_is_rerun_and_the_log_stays_readable(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[0]))
    run.append(record(PLAN[1]))
    run.close()
    path = tmp_path / "r/trials.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    resumed = open_run(tmp_path / "r")
    assert resumed.remaining() == PLAN[1:]
    resumed.append(record(PLAN[1]))
    resumed.close()
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == [PLAN[0].key, PLAN[1].key]


def test_broken_line_in_the_middle_is_named(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[0]))
    run.append(record(PLAN[1]))
    run.close()
    path = tmp_path / "r/trials.jsonl"
    path.write_bytes(b"{oops\n" + path.read_bytes())
    with pytest.raises(UserError, match="line 1"):
        open_run(tmp_path / "r").records()


def test_first_of_equal_records_counts_and_different_outcomes_are_an_error(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[0], worker="first"))
    run.append(record(PLAN[0], worker="second"))
    assert run.records()[PLAN[0].key].worker == "first"
    run.append(record(PLAN[0], Outcome.FAILURE))
    with pytest.raises(UserError, match=r"click_bell demo_clean seed 100000 .* success and failure"):
        run.records()
    run.close()


def test_missing_trial_can_be_retried_and_then_counts(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[0], Outcome.SIM_ERROR, error=ErrorInfo(kind="crash", message="gone")))
    assert PLAN[0] not in run.remaining()
    assert PLAN[0] in run.remaining(retry_errors=True)
    run.append(record(PLAN[0], Outcome.FAILURE))
    assert run.records()[PLAN[0].key].outcome is Outcome.FAILURE
    assert PLAN[0] not in run.remaining(retry_errors=True)
    run.close()


def test_record_outside_the_plan_is_an_error(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(spec(100003)))
    with pytest.raises(UserError, match="seed 100003"):
        run.records()
    run.close()


def test_edited_record_is_noticed(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[0]))
    run.close()
    path = tmp_path / "r/trials.jsonl"
    path.write_text(path.read_text().replace('"seed":100000', '"seed":100001'))
    with pytest.raises(UserError, match="its spec gives"):
        open_run(tmp_path / "r").records()


def _hold(folder, ready, leave):
    run = open_run(folder)
    run.lock()
    ready.set()
    leave.wait(30)


def test_one_writer(tmp_path):
    Run.create(tmp_path / "r", info(), PLAN)
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "r", ready, leave))
    other.start()
    assert ready.wait(30)
    run = open_run(tmp_path / "r")
    with pytest.raises(UserError, match="another evalkit process"):
        run.append(record(PLAN[0]))
    other.kill()
    other.join()
    run.append(record(PLAN[0]))
    assert len(run.records()) == 1
    run.close()


def test_reading_does_not_touch_the_files(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append(record(PLAN[0]))
    run.close()
    path = tmp_path / "r/trials.jsonl"
    path.write_bytes(path.read_bytes() + b'{"half')
    before = path.read_bytes()
    open_run(tmp_path / "r").records()
    assert path.read_bytes() == before


def test_incidents_are_kept_apart(tmp_path):
    run = Run.create(tmp_path / "r", info(), PLAN)
    run.append_incident(PLAN[0].key, "click_bell", 1, "worker-0", ErrorInfo(kind="crash", message="gone", signal=11))
    run.close()
    again = open_run(tmp_path / "r")
    assert again.records() == {}
    assert again.incidents()[0]["error"]["signal"] == 11
