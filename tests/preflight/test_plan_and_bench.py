"""``evalkit plan`` says what ``evalkit run`` would do; ``evalkit robotwin bench`` gives it the hours."""

import json

import pytest

from evalkit.cli.main import run_cli

RUN = ["--policy", "noop", "--mode", "c2c", "--tasks", "click_bell,place_shoe", "--trials", "3", "--backend", "fake"]


@pytest.fixture
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")


def plan(capsys, *more):
    assert run_cli(["plan", *RUN, "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_without_rates_there_are_counts_and_the_way_to_hours(here, capsys):
    found = plan(capsys)
    assert (found["trials"], found["done"], found["seeds_known"]) == (6, 0, 0)
    assert found["candidates"] == 6, "nothing is known of the acceptance: at least one candidate a trial"
    assert found["cost"] is None
    assert found["wall"] == {}
    assert run_cli(["plan", *RUN]) == 0
    page = capsys.readouterr().out
    assert "6 in 2 lists: 0 done, 6 to run" in page
    assert "evalkit robotwin bench" in page
    assert " h" not in page.split("rates")[1].split("memory")[0]


def test_a_bench_gives_a_range_and_names_what_it_doesnt_know(here, capsys):
    bench = ["robotwin", "bench", "--backend", "fake", "--tasks", "click_bell", "--mode", "c2c", "--json"]
    assert run_cli(bench) == 0
    measured = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["config"]) for row in measured["rates"]] == [("click_bell", "demo_clean")]
    assert measured["rates"][0]["expert_steps"] >= 1
    found = plan(capsys)
    assert found["cost"]["borrowed"] == ["place_shoe/demo_clean"]
    assert found["cost"]["unknown"] == ["the policy's own time"]
    assert set(found["wall"]) == {"shortest", "longest"}
    assert found["wall"]["shortest"]["worker_s"] < found["wall"]["longest"]["worker_s"]
    assert run_cli(["plan", *RUN]) == 0
    assert "1 of 2 lists have no rate of their own" in capsys.readouterr().out


def test_after_the_run_nothing_is_left_and_a_longer_one_is_expected_as_before(here, capsys):
    assert run_cli(["run", *RUN, "--workers", "1"]) == 0
    capsys.readouterr()
    found = plan(capsys)
    assert (found["trials"], found["done"], found["cost"]) == (6, 6, None)
    assert run_cli(["plan", *RUN]) == 0
    assert "nothing is left to run" in capsys.readouterr().out
    longer = plan(capsys, "--trials", "5")
    assert (longer["trials"], longer["done"], longer["seeds_known"]) == (10, 0, 6)
    assert longer["sources"] == ["6 trials of this policy in results/runs"]
    assert set(longer["wall"]) == {"expected", "longest"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("robotwin bench --backend fake --cameras head_camera,hand", "unknown camera 'hand'"),
        ("robotwin bench --backend fake --tasks click_bel", "unknown task 'click_bel': did you mean click_bell"),
        ("plan --policy nop --backend fake", "unknown policy 'nop': did you mean noop?"),
    ],
)
def test_bad_input_is_one_line(here, capsys, arguments, says):
    assert run_cli(arguments.split()) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
