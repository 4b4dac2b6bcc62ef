"""``evalkit plan`` says what ``evalkit run`` would do; ``evalkit robotwin bench`` gives it the hours."""

import json

import pytest

from evalkit.cli.main import run_cli
from evalkit.core.trial import BackendFingerprint
from evalkit.plan.seed_files import SeedFiles, local_folder
from evalkit.plan.seeds import SeedEntry
from evalkit.pool.devices import TABLE_FILE
from evalkit.protocol.config import load_config

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


def test_a_protocol_has_its_own_seeds_and_limits(here, capsys):
    assert run_cli(["robotwin", "bench", "--backend", "fake", "--tasks", "click_bell", "--mode", "c2c"]) == 0
    capsys.readouterr()
    ours = plan(capsys, "--tasks", "click_bell")
    fields = {name: value for name, value in ours["backend"].items() if name != "digest"}
    files = SeedFiles(local_folder(), BackendFingerprint(**fields).physics_digest)
    config = load_config("demo_clean")
    with files:
        for number in range(4):
            files.append(
                "click_bell",
                config.name,
                SeedEntry(
                    seed=100_000 + number,
                    accepted=number != 1,
                    reason="ok" if number != 1 else "plan_failed",
                    config_digest=config.digest,
                    scene_digest="s",
                ),
            )
    # Seeds known, candidates to check, of: the list itself; other sentences; other seeds; no expert's check.
    expected = {"leaderboard": (3, 0), "robotwin-legacy": (3, 0), "x-vla": (0, 3), "lerobot": (0, 0)}
    found = {name: plan(capsys, "--tasks", "click_bell", "--protocol", name) for name in expected}
    assert {name: (row["seeds_known"], row["candidates"]) for name, row in found.items()} == expected
    steps = {name: row["cost"]["high"]["physics_s"] for name, row in found.items()}
    assert steps["x-vla"] / steps["leaderboard"] == pytest.approx(300 / 400)
    assert steps["lerobot"] / steps["leaderboard"] == pytest.approx(1200 / 400)


def test_gpus_are_those_a_run_would_use(here, capsys, monkeypatch, tmp_path):
    table = tmp_path / "gpus.csv"
    table.write_text("".join(f"{n}, GPU-{n}, 00000000:{n}B:00.0, NVIDIA H200, 143771, 143000, N/A\n" for n in range(4)))
    monkeypatch.setenv(TABLE_FILE, str(table))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def machine(*more):
        found = plan(capsys, "--workers", "5", *more)["machine"]
        return found["gpus"], found["servers"], found["workers"]

    assert machine() == (4, 4, 5)
    assert machine("--gpus", "2") == (2, 2, 5)
    assert machine("--gpus", "3,", "--servers-per-gpu", "2") == (1, 2, 5)
    assert machine("--gpus", "0") == (0, 1, 5)
    assert run_cli(["plan", *RUN, "--gpus", "5"]) == 2
    assert "--gpus 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("robotwin bench --backend fake --cameras head_camera,hand", "unknown camera 'hand'"),
        ("robotwin bench --backend fake --tasks click_bel", "unknown task 'click_bel': did you mean click_bell"),
        ("plan --policy nop --backend fake", "unknown policy 'nop': did you mean noop?"),
        ("plan --ckpt step_10000,step_30000 --backend fake", "evalkit plan takes one"),
    ],
)
def test_bad_input_is_one_line(here, capsys, arguments, says):
    assert run_cli(arguments.split()) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
