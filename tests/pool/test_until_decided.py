"""``evalkit run --until-decided`` on the fake backend, with the pool in this process unless a test says otherwise."""

import json
import shutil

import pytest
from pool_kit import Make, essence

from evalkit.cli import until_decided
from evalkit.cli.main import run_cli
from evalkit.cli.stopping import StopRequest
from evalkit.pool import ray_crew
from evalkit.pool.ray_crew import RayCrew
from evalkit.report.choice import open_decision
from evalkit.sim.fake import FakeWorld, Fault, factory
from evalkit.sim.fake.world import SEVENTHS
from evalkit.store.run import open_run

COMMAND = "run --backend fake --mode all --tasks click_bell,place_shoe --trials 6 --until-decided"


def decide(*arguments, command=COMMAND):
    return run_cli([*command.split(), *arguments])


def decision(folder):
    return json.loads((folder / "decision.json").read_text())


def runs_of(folder):
    values = decision(folder)
    return [open_run(folder / values[side]["run"]) for side in ("first", "second")]


def test_the_better_policy_is_named_and_nobody_gets_a_score(inline, tmp_path, capfd):
    assert decide("noop", "replay", "--workers", "2") == 0
    [folder] = (tmp_path / "results/decisions").iterdir()
    values = decision(folder)
    assert (values["state"], values["verdict"], values["score"]) == ("decided", "second", None)
    assert values["counts"] == {"both": 0, "first_only": 0, "second_only": 7, "neither": 0, "missing": 0}
    assert values["statement"] == "replay is better than noop: decided after 7 pairs, anytime-valid p 0.037"
    assert values["pairs_at_most"] == 24
    output = capfd.readouterr().out
    assert "replay is better than noop" in output
    assert "It is no score of either" in " ".join(output.replace("│", "").split())
    for run in runs_of(folder):
        assert run.is_done
        assert 7 <= len(run.records()) <= 9 < len(run.plan)
        summary = json.loads((run.folder / "summary.json").read_text())
        assert (summary["status"], summary["average"]) == ("stopped", None)
        assert summary["stopping"].startswith("stopped early by --until-decided: ")
        assert {config["score"] or config["partial_mean"] for config in summary["configs"]} == {None}
        assert "a choice between two policies, not a score" in (run.folder / "report.html").read_text()


def test_the_same_command_shows_a_decision_again_without_a_crew(inline, tmp_path, capfd):
    assert decide("noop", "replay", "--json") == 0
    first = json.loads(capfd.readouterr().out)
    assert decide("noop", "replay", "--json") == 0
    assert json.loads(capfd.readouterr().out) == first
    assert inline["made"] == 1


@pytest.mark.parametrize(("workers", "newest_first"), [(1, False), (3, True), (4, False)])
def test_the_order_of_completion_decides_nothing(inline, tmp_path, workers, newest_first):
    inline["newest_first"] = newest_first
    assert decide("replay", "noop", "--workers", str(workers)) == 0
    [folder] = (tmp_path / "results/decisions").iterdir()
    values = decision(folder)
    assert (values["verdict"], values["pairs"]) == ("first", 7)
    assert all(len(run.records()) >= 7 for run in runs_of(folder))


def test_an_interrupted_decision_goes_on(inline, tmp_path, monkeypatch, capfd):
    assert decide("noop", "replay", "--out", "whole") == 0
    asked = 0

    def soon(self):
        nonlocal asked
        asked += 1
        return asked > 5

    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "__call__", soon)
        assert decide("noop", "replay") == 75
    assert "the same command goes on" in capfd.readouterr().err
    [folder] = (tmp_path / "results/decisions").iterdir()
    assert 0 < sum(len(run.records()) for run in map(open_run, folder.glob("*-all-*"))) < 14
    capfd.readouterr()
    assert run_cli(["status", str(folder)]) == 0
    assert "not decided yet between noop and replay: " in " ".join(capfd.readouterr().out.split())
    assert decide("noop", "replay") == 0
    whole, again = decision(tmp_path / "whole"), decision(folder)
    assert {**whole, "first": 0, "second": 0} == {**again, "first": 0, "second": 0}
    for one, other in zip(runs_of(tmp_path / "whole"), runs_of(folder), strict=True):
        assert one.info.run_id == other.info.run_id
        assert {key: found for key, found in essence(other).items() if key in essence(one)} == essence(one)
        assert len(other.history()) == len(other.records())


def test_a_kill_before_the_decision_file_leaves_something_to_go_on_with(inline, tmp_path):
    assert decide("noop", "replay", "--out", "there") == 0
    (tmp_path / "there/decision.json").unlink()
    [lost, _] = sorted((tmp_path / "there").iterdir())
    shutil.rmtree(lost)
    assert decide("noop", "replay", "--out", "there") == 0
    assert decision(tmp_path / "there")["verdict"] == "second"


def test_equal_policies_use_up_the_budget(inline, tmp_path, capfd):
    assert decide("expert", "replay") == 0
    [folder] = (tmp_path / "results/decisions").iterdir()
    assert decision(folder)["state"] == "budget used up"
    assert "undecided between expert and replay: the budget of 24 pairs is used up" in capfd.readouterr().out
    assert all(run.is_done and not run.remaining() for run in runs_of(folder))


def test_a_pair_with_a_missing_trial_counts_against_the_better_side(inline, tmp_path, capfd):
    inline["world"] = FakeWorld(faults=(Fault(kind="exception", seed=100000, step=1),))
    command = COMMAND.replace("click_bell,place_shoe --trials 6", "click_bell --trials 5")
    assert decide("noop", "replay", command=command) == 1
    [folder] = (tmp_path / "results/decisions").iterdir()
    values = decision(folder)
    assert (values["state"], values["verdict"]) == ("budget used up", "undecided")
    assert values["counts"]["second_only"] == 8  # enough, but for the two
    assert values["missing"] == ["click_bell demo_clean seed 100000", "click_bell demo_randomized seed 100000"]
    inline["world"] = SEVENTHS
    assert decide("noop", "replay", "--retry-errors", command=command) == 0
    assert decision(folder)["verdict"] == "second"
    assert decision(folder)["pairs"] == 7


def test_a_decision_can_be_read_like_a_run(inline, tmp_path, capfd):
    assert decide("noop", "replay", "--out", "d") == 0
    capfd.readouterr()
    assert run_cli(["status", "d"]) == 0
    assert "replay is better than noop: decided after 7 pairs" in capfd.readouterr().out
    assert run_cli(["status", "d", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == decision(tmp_path / "d")
    first, second = (str(run.folder) for run in runs_of(tmp_path / "d"))
    assert run_cli(["status", first]) == 0
    shown = capfd.readouterr().out
    assert "stopped early by --until-decided" in shown
    assert "0 succeeded" in shown
    assert "%)" not in shown.split("click_bell")[1]
    for refused, message in (
        (["export", "d"], "d is a decision between two runs, no run: evalkit status shows it"),
        (
            ["export", first, "--format", "official", "--name", "x", "--contributor", "y"],
            "no official entry: stopped early by --until-decided",
        ),
    ):
        assert run_cli(refused) == 2
        assert message in capfd.readouterr().err
    assert run_cli(["compare", first, second]) == 0
    compared = " ".join(capfd.readouterr().out.split())
    assert compared.count("verdict: not comparable: ") == 2
    assert "its trials choose between two policies and are no score" in compared


def test_what_the_runs_say_counts_not_the_file(inline, tmp_path):
    assert decide("noop", "replay", "--out", "d") == 0
    path = tmp_path / "d/decision.json"
    path.write_text(path.read_text().replace('"verdict": "second"', '"verdict": "first"'))
    choice, runs = open_decision(tmp_path / "d")
    assert choice.decision.verdict == "second"
    assert [run.info.policy.adapter for run in runs] == ["noop", "replay"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("noop", "noop"), "noop and noop are the same policy: there is nothing to decide"),
        (("noop", "nop"), "no checkpoint 'nop'"),
        (("noop", "--json"), "takes two names, and --json isn't one"),
        (("noop", "replay", "--policy", "noop"), "names both policies itself: leave --ckpt and --policy out"),
        (("noop", "replay", "--repeats", "2"), "takes each scene once: leave --repeats out"),
        (("noop", "replay", "--order", "given"), "takes one scene of each task in turn: leave --order out"),
        (("noop", "replay", "--out", "full"), "full holds notes.txt, which isn't of this decision"),
    ],
)
def test_bad_input(inline, tmp_path, capfd, arguments, says):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    assert decide(*arguments) == 2
    error = capfd.readouterr().err
    assert says in error
    assert len([line for line in error.splitlines() if line.startswith("evalkit:")]) == 1


def test_a_folder_with_another_decision_is_refused(inline, tmp_path, capfd):
    assert decide("noop", "replay", "--out", "d") == 0
    assert decide("replay", "noop", "--out", "d") == 2
    assert "d holds another decision (noop-or-replay-all-" in capfd.readouterr().err


def test_two_policies_on_one_crew_of_actors(tmp_path, ray_here, monkeypatch):
    """With Ray: each policy has its server, and a trial reaches the right one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(StopRequest, "install", lambda self: None)
    monkeypatch.setattr(factory, "maker_from_environment", lambda: Make(_world))
    crews = []
    monkeypatch.setattr(
        ray_crew, "RayCrew", lambda *arguments, **options: crews.append(RayCrew(*arguments, **options)) or crews[-1]
    )
    assert decide("noop", "replay", "--workers", "1", "--out", "d") == 0
    assert len(crews) == 1
    assert decision(tmp_path / "d")["verdict"] == "second"
    noop, replay = runs_of(tmp_path / "d")
    assert {record.outcome for record in noop.records().values()} == {"failure"}
    assert {record.outcome for record in replay.records().values()} == {"success"}


def _world():
    from evalkit.sim.fake import FakeSimulator

    return FakeSimulator(SEVENTHS)


def test_alpha_is_written_down(inline, tmp_path):
    assert decide("noop", "replay", "--out", "d") == 0
    assert decision(tmp_path / "d")["alpha"] == until_decided.ALPHA == 0.05
    assert {run.info.stopping.alpha for run in runs_of(tmp_path / "d")} == {0.05}
