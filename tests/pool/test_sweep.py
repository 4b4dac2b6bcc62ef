"""``evalkit run`` with several policies on the fake backend, with the pool in this process unless a test says so."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from pool_kit import essence

from evalkit.cli import sweep_memory
from evalkit.cli.main import run_cli
from evalkit.cli.stopping import StopRequest
from evalkit.store.run import open_run
from evalkit.store.sweep import open_sweep, read_sweep

REST = ["--backend", "fake", "--mode", "all", "--tasks", "click_bell,place_shoe", "--trials", "4"]
THREE = "noop,replay,expert"


def sweep(*arguments, policies=THREE):
    return run_cli(["run", "--policy", policies, *REST, "--workers", "2", *arguments])


def only_sweep(tmp_path):
    [folder] = (tmp_path / "results/sweeps").iterdir()
    return folder


def runs_of(folder):
    return open_sweep(folder)[1]


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text())


def test_each_policy_is_the_run_it_would_be_alone_and_one_table_holds_all(inline, tmp_path, capfd):
    assert sweep() == 0
    folder = only_sweep(tmp_path)
    assert inline["policies"] == [3]  # one crew
    runs = runs_of(folder)
    assert [run.info.policy.adapter for run in runs] == ["noop", "replay", "expert"]
    shown = capfd.readouterr().out
    assert "Trials are missing" not in shown
    assert "replay is best in the mean here, level with expert. Not told apart from it: expert." in " ".join(
        shown.replace("│", "").split()
    )
    with (folder / "leaderboard.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["noop", "replay", "expert"]
    assert [row["is_best"] for row in rows] == ["no", "yes", "no"]
    assert [row["minus_best"] for row in rows] == ["-100.00", "", "0.00"]
    assert summary_of(folder)["best"] == "replay"
    page = (folder / "report.html").read_text()
    assert f'href="../../runs/{runs[0].folder.name}/report.html"' in page
    for run in runs:
        assert run.is_done
        assert len(run.records()) == len(run.plan) == 16
        assert json.loads((run.folder / "summary.json").read_text())["average"] is not None
    for name, run in zip(THREE.split(","), runs, strict=True):
        out = tmp_path / f"alone-{name}"
        assert run_cli(["run", "--policy", name, *REST, "--workers", "1", "--out", str(out)]) == 0
        alone = open_run(out)
        assert alone.info.identity() == run.info.identity()
        assert essence(alone) == essence(run)


def test_runs_that_are_there_arent_run_again(inline, tmp_path):
    assert run_cli(["run", "--policy", "noop", *REST]) == 0
    [alone] = (tmp_path / "results/runs").iterdir()
    before = (alone / "trials.jsonl").read_bytes()
    assert sweep(policies="noop,replay") == 0
    assert inline["policies"] == [1, 1]  # noop's server isn't started again
    assert (alone / "trials.jsonl").read_bytes() == before
    assert sweep() == 0  # one more policy: another sweep, the same runs
    assert inline["policies"] == [1, 1, 1]
    assert sweep() == 0
    assert inline["made"] == 3
    assert len(list((tmp_path / "results/runs").iterdir())) == 3


def test_interrupted_anywhere_all_have_met_the_same_scenes_and_the_same_command_goes_on(
    inline, tmp_path, monkeypatch, capfd
):
    assert sweep("--out", "whole") == 0
    asked = 0

    def soon(self):
        nonlocal asked
        asked += 1
        return asked > 21

    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "__call__", soon)
        assert sweep() == 75
    folder = only_sweep(tmp_path)
    met = [{(spec.task, spec.config, spec.seed) for spec in run.records_specs} for run in map(_Specs, runs_of(folder))]
    assert 3 < sum(map(len, met)) < 40
    assert max(map(len, met)) - min(map(len, met)) <= 1
    assert len(set.intersection(*met)) == min(map(len, met))
    by_task = [task for task, _, _ in set.intersection(*met)]
    assert abs(by_task.count("click_bell") - by_task.count("place_shoe")) <= 2
    capfd.readouterr()
    assert run_cli(["status", folder.name]) == 0
    shown = capfd.readouterr().out
    assert "not finished; the same command goes on with it" in shown
    assert "Trials are missing, so these aren't compared: noop, replay, expert." in " ".join(
        shown.replace("│", "").split()
    )
    assert run_cli(["export", str(folder)]) == 1
    assert sweep() == 0
    for one, other in zip(runs_of(tmp_path / "whole"), runs_of(folder), strict=True):
        assert essence(one) == essence(other)
        assert len(other.history()) == len(other.records())
    whole, again = summary_of(tmp_path / "whole"), summary_of(folder)
    assert whole["checkpoints"] == again["checkpoints"]


class _Specs:
    def __init__(self, run):
        self.records_specs = [record.spec for record in run.records().values()]


@pytest.mark.parametrize(("at_once", "groups"), [(1, [1, 1, 1]), (2, [2, 1]), (9, [3])])
def test_policies_that_dont_fit_follow_each_other(inline, tmp_path, at_once, groups):
    assert sweep("--servers-at-once", str(at_once)) == 0
    assert inline["policies"] == groups
    assert summary_of(only_sweep(tmp_path))["best"] == "replay"


def test_how_many_fit():
    gb = 1 << 30
    assert sweep_memory.fit(10 * gb, 80 * gb, 8) == 4  # 16 GiB each, of 64
    assert sweep_memory.fit(10 * gb, 80 * gb, 8, servers_each=2) == 2
    assert sweep_memory.fit(10 * gb, 8 * gb, 8) == 1  # it may still fit; more won't
    assert sweep_memory.fit(0, 16 * gb, 3) == 3


def test_a_policy_that_cant_be_loaded_stops_only_its_own_run(inline, tmp_path, capfd):
    inline["broken"] = {"replay"}
    assert sweep() == 1
    folder = only_sweep(tmp_path)
    noop, replay, expert = runs_of(folder)
    assert noop.is_done
    assert expert.is_done
    assert not replay.records()
    assert not replay.is_done
    [(run_id, reason)] = read_sweep(folder).failures.items()
    assert run_id == replay.info.run_id
    assert "the policy can't be loaded: RuntimeError: out of memory" in reason
    assert f"{run_id} ended early: the policy can't be loaded" in capfd.readouterr().err
    values = summary_of(folder)
    assert values["best"] == "expert"
    assert values["checkpoints"][1]["average"] is None
    inline["broken"] = set()
    assert sweep() == 0
    assert inline["policies"] == [3, 1]
    assert read_sweep(folder).failures == {}
    assert summary_of(folder)["best"] == "replay"


def test_only_broken_policies(inline, tmp_path, capfd):
    inline["broken"] = {"replay", "noop"}
    assert sweep(policies="noop,replay") == 1
    assert summary_of(only_sweep(tmp_path))["best"] is None
    assert capfd.readouterr().err.count("ended early") == 2


def test_a_folder_of_its_own_and_the_commands_that_read_it(inline, tmp_path, capfd):
    assert sweep("--out", "mine") == 0
    assert not (tmp_path / "results/runs").exists()
    runs = runs_of(tmp_path / "mine")
    assert all(run.folder.parent.resolve() == tmp_path / "mine" for run in runs)
    shutil.move("mine", "moved")
    capfd.readouterr()
    assert run_cli(["status", "moved", "--json"]) == 0
    state = json.loads(capfd.readouterr().out)
    assert (state["planned"], state["not_run"], state["best"]) == (48, 0, "replay")
    assert run_cli(["export", "moved", "--out", "tables"]) == 0
    assert (tmp_path / "tables/leaderboard.csv").read_text() == (tmp_path / "moved/leaderboard.csv").read_text()
    assert run_cli(["export", "moved", "--format", "markdown"]) == 2
    assert "--format markdown is for single runs" in capfd.readouterr().err
    assert run_cli(["report", "moved", "--out", "page.html"]) == 0
    assert "evalkit sweep" in (tmp_path / "page.html").read_text()
    assert run_cli(["report", "moved", "--serve"]) == 2
    capfd.readouterr()
    assert run_cli(["compare", "moved"]) == 0
    compared = capfd.readouterr().out
    assert all(run.info.run_id in compared for run in runs)
    assert run_cli(["report", str(tmp_path / "moved"), "--out", "tables"]) == 2
    assert run_cli(["export", "moved", str(runs[0].folder).replace("mine", "moved"), "--out", "both"]) == 2
    assert "moved is a sweep of several runs, no run" in capfd.readouterr().err


def test_a_sweep_grows_in_its_folder_but_keeps_its_settings(inline, tmp_path, capfd):
    assert sweep("--out", "mine", policies="noop,replay") == 0
    assert sweep("--out", "mine") == 0
    assert inline["policies"] == [2, 1]
    assert len(read_sweep(tmp_path / "mine").runs) == 3
    assert sweep("--out", "mine", "--seed-base", "1") == 2
    assert "mine holds a sweep with other settings" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--policy", "noop,noop "), ""),
        (("--policy", "noop,replay", "--ckpt", "x"), "so --ckpt has no meaning"),
        (("--policy", "noop,replay", "--order", "given", "--tasks", "click_bell"), "leave --order out"),
        (("--policy", "noop", "--every", "5"), "--every chooses among checkpoints"),
        (("--policy", "no/such*.yaml"), "--policy no/such*.yaml matches no policy file"),
        (("--policy", "noop,nop"), "nop"),
        (("--ckpt", "no/step_*"), "--ckpt no/step_* matches no complete checkpoint"),
        (("--policy", "noop,replay", "--out", "full"), "full holds files but no sweep.json"),
    ],
)
def test_bad_input(inline, tmp_path, capfd, arguments, says):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    code = run_cli(["run", *REST, *arguments])
    assert code == (2 if says else 0)
    error = capfd.readouterr().err
    assert says in error
    assert len([line for line in error.splitlines() if line.startswith("evalkit:")]) == bool(says)


def test_killed_outright_and_finished(inline, tmp_path):
    """Killed with Ray, as a person starts it; finished in this process: another crew, the same runs."""
    command = [sys.executable, "-m", "evalkit.cli.main", "run", "--policy", "noop,replay", *REST[:-1], "30"]
    command += ["--workers", "1"]

    def ended():
        return sum(path.read_bytes().count(b"\n") for path in (tmp_path / "results/runs").glob("*/trials.jsonl"))

    with (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 240
        while ended() < 10:
            assert time.monotonic() < until
            assert process.poll() is None, (tmp_path / "log.txt").read_text()
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert 10 <= ended() < 240
    assert run_cli(command[3:]) == 0
    runs = runs_of(only_sweep(tmp_path))
    assert [len(run.records()) for run in runs] == [120, 120]
    assert all(len(run.history()) == 120 for run in runs)
    assert {record.outcome for record in runs[0].records().values()} == {"failure"}
    assert {record.outcome for record in runs[1].records().values()} == {"success"}
