from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic import card, make_run, split

from evalkit.cli.main import run_cli
from evalkit.cli.status import find_run
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.outcome import Outcome

CLEAN, RANDOMIZED = "demo_clean", "demo_randomized"


def test_status_of_a_run_under_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = {("click_bell", CLEAN): [Outcome.SUCCESS, Outcome.POLICY_ERROR, None, None]}
    outcomes[("click_bell", RANDOMIZED)] = [None] * 4
    make_run(tmp_path / "run", outcomes, training=card(), command=("evalkit", "run", "--ckpt", "my step"))
    assert run_cli(["status", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert "2 of 8 trials scored (25.0 %), 6 not run" in text
    (row,) = (line for line in text.splitlines() if line.startswith("click_bell"))
    assert row.split() == ["click_bell", "2/4", "50", "%", "(9–91)", "0/4"]
    assert "1 x policy_error: crash" in text
    assert "evalkit run --ckpt 'my step'" in text
    assert run_cli(["status", str(tmp_path / "run"), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["planned"], values["scored"], values["not_run"], values["finished"]) == (8, 2, 6, False)
    task = values["configs"][CLEAN]["tasks"]["click_bell"]
    assert task == {"planned": 4, "scored": 2, "successes": 1, "policy_errors": 1}


def test_status_names_trials_whose_every_attempt_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "run", {("click_bell", CLEAN): [Outcome.SUCCESS, Outcome.SIM_ERROR, None]}, training=card())
    assert run_cli(["status", str(tmp_path / "run")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "every attempt failed: click_bell demo_clean seed 100001 (sim_error: crash)" in text
    assert "to try these again: the same command with --retry-errors" in text
    assert run_cli(["status", str(tmp_path / "run"), "--json"]) == 0
    [trial] = json.loads(capsys.readouterr().out)["every_attempt_failed"]
    assert (trial["seed"], trial["why"]) == (100001, "sim_error: crash")


def test_the_newest_run_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no run in results/runs"):
        find_run(None)
    with pytest.raises(UserError, match="nope isn't a folder"):
        find_run("nope")
    runs = Path("results/runs")
    for age_s, name in enumerate(("newer", "older")):
        make_run(runs / name, {("click_bell", CLEAN): split(1, 2)})
        os.utime(runs / name / "trials.jsonl", (1e9 - age_s, 1e9 - age_s))
    assert find_run(None) == runs / "newer"
    assert find_run("older") == runs / "older"
    with pytest.raises(UnknownNameError, match="did you mean older"):
        find_run("oldr")


def test_export_writes_three_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "run", {("click_bell", CLEAN): split(1, 2)}, training=card())
    assert run_cli(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    assert "c2c partial" in capsys.readouterr().out
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["leaderboard.csv", "leaderboard_tasks.csv", "summary.json"]


def test_export_of_99_of_100_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "run", {("click_bell", CLEAN): [*split(80, 99), None]})
    assert run_cli(["export", str(tmp_path / "run"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "incomplete"


def test_export_of_no_run_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["export", str(tmp_path)]) == 2
    assert "isn't a run: it has no run.json" in capsys.readouterr().err


def test_reading_results_loads_nothing_heavy(tmp_path: Path) -> None:
    make_run(tmp_path / "run", {("click_bell", CLEAN): split(1, 2)}, training=card())
    code = (
        "import sys; from evalkit.cli.main import run_cli; "
        f"code = run_cli(['export', {str(tmp_path / 'run')!r}]); "
        "heavy = {'sapien', 'ray', 'torch', 'pandas', 'scipy.stats', 'h5py'} & set(sys.modules); "
        "sys.exit(f'{heavy} loaded' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
