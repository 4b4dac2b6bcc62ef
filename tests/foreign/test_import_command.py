from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.cli.main import run_cli
from evalkit.core.tasks import TASKS
from evalkit.report.imported import ENOUGH_TRIALS, summarise_imported
from evalkit.store.foreign.scores import ImportedScores, ImportedTask


def scores(*items: ImportedTask) -> ImportedScores:
    return ImportedScores(kind="csv", path="x", policy=None, tasks=items, notes=())


def item(task: str, successes: int | None, trials: int | None, rate: float = 0.8, errors: int = 0) -> ImportedTask:
    if successes is not None and trials:
        rate = successes / trials
    return ImportedTask(
        task=task, config="demo_clean", rate=rate, trials=trials, successes=successes, errors=errors, source="s"
    )


def test_the_mean_weighs_tasks_not_trials() -> None:
    (config,) = summarise_imported(scores(item("click_bell", 80, 100), item("grab_roller", 45, 50))).configs
    assert config.mean == pytest.approx(0.85)
    assert (config.label.text, config.status, config.trials, len(config.missing_tasks)) == ("?2c", "partial", 150, 48)
    assert config.estimate
    assert config.estimate.low < 0.85 < config.estimate.high


def test_an_unknown_number_of_trials_has_no_interval() -> None:
    (config,) = summarise_imported(scores(item("click_bell", 80, 100), item("grab_roller", None, None))).configs
    assert (config.status, config.trials, config.estimate, config.bounds) == ("n unknown", None, None, None)
    assert config.mean == pytest.approx(0.8)


def test_errors_leave_bounds() -> None:
    (config,) = summarise_imported(scores(item("click_bell", 80, 99, errors=1))).configs
    assert (config.status, config.estimate) == ("incomplete", None)
    assert config.bounds
    assert (config.bounds.low, config.bounds.high) == (0.8, 0.81)


def test_only_fifty_tasks_of_a_hundred_trials_are_complete() -> None:
    whole = [item(task, 50, ENOUGH_TRIALS) for task in TASKS]
    assert summarise_imported(scores(*whole)).configs[0].status == "complete"
    assert summarise_imported(scores(*whole[1:])).configs[0].status == "partial"
    assert summarise_imported(scores(item(TASKS[0], 5, 10), *whole[1:])).configs[0].status == "partial"


def tree(folder: Path) -> Path:
    for task, rate in (("click_bell", "0.83"), ("grab_roller", "0.5")):
        place = folder / task / "ACT/demo_randomized/c/2026-08-01 12:30:00"
        place.mkdir(parents=True)
        (place / "_result.txt").write_text(f"Timestamp: x\n\nInstruction Type: unseen\n\n{rate}")
    return folder


def test_import_prints_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["import", str(tree(tmp_path / "r")), "--kind", "robotwin", "--out", str(tmp_path / "o.json")]) == 0
    text = capsys.readouterr().out
    assert "?2r  demo_randomized" in text
    assert "83.0  n=?" in text
    assert "no training_card.json: the training data is unknown" in text
    assert "?2r n unknown: 2 of 50 tasks, 48 tasks missing" in text
    values = json.loads((tmp_path / "o.json").read_text())
    assert (values["unit"], values["policy"], values["configs"][0]["label"]["text"]) == ("fraction", "ACT/c", "?2r")
    assert values["configs"][0]["tasks"][0]["trials"] is None


def test_stated_trials_give_an_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["import", str(tree(tmp_path)), "--kind", "robotwin", "--trials", "100", "--json"]) == 0
    (config,) = json.loads(capsys.readouterr().out)["configs"]
    assert (config["status"], config["trials"]) == ("partial", 200)
    assert config["estimate"]["n"] == 200


def test_an_unknown_configuration_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results.json").write_text('{"sim/click_bell": 1}\n')
    assert run_cli(["import", str(tmp_path), "--kind", "x-vla"]) == 0
    text = capsys.readouterr().out
    assert "?2?  configuration unknown" in text
    assert "the source doesn't name the configuration" in text
    assert run_cli(["import", str(tmp_path), "--kind", "x-vla", "--config", "demo_clean"]) == 0
    assert "?2c  demo_clean" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--kind", "nope"], "unknown kind of results 'nope'"),
        (["--kind", "csv", "--unit", "points"], "unknown unit 'points'"),
        (["--kind", "robotwin"], "holds no _result.txt"),
        (["--kind", "x-vla", "--config", "demo_clear"], "holds no results.json"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert run_cli(["import", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert len(error.strip().splitlines()) == 1
