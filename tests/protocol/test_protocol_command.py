from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from evalkit.cli import protocol
from evalkit.core.locations import bundled
from evalkit.protocol.sheets import known_sheets


def run(*arguments: str) -> Result:
    app = typer.Typer()
    protocol.register(app)
    app.command("other")(lambda: None)
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["protocol", *arguments])


def answer(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list() -> None:
    assert [row["name"] for row in answer("list")] == list(known_sheets())
    text = run("list").stdout
    assert all(name in text for name in known_sheets())


@pytest.mark.parametrize("name", known_sheets())
def test_show(name: str) -> None:
    values = answer("show", name)
    assert values["name"] == name
    assert values["source"]
    text = " ".join(run("show", name).stdout.split())
    assert values["first_seed"] in text
    assert values["source"][:40] in text


def test_show_says_what_words_mean_and_where_they_are_from() -> None:
    text = run("show", "x-vla").stdout
    assert "the same for all tasks" in text
    assert "ten chunks of 30 actions" in text
    assert "evalkit run --protocol x-vla repeats it" in text
    assert "in the place of errors: policy_failure_sim_missing" in run("show", "x-wam").stdout
    assert "evalkit run --protocol leaderboard repeats it" in run("show", "leaderboard").stdout


def test_diff_of_x_wam() -> None:
    values = answer("diff", "leaderboard", "x-wam")
    effects = {row["field"]: row["effect"] for row in values["fields"]}
    assert effects["training"] == "blocks"
    assert effects["instruction_split of demo_clean"] == "caveat"
    assert "instruction_split of demo_randomized" not in effects
    assert effects["action_type"] == "", "ee is one of those the leaderboard allows"
    assert [verdict["legal"] for verdict in values["verdicts"].values()] == [False, False]
    text = run("diff", "leaderboard", "x-wam").stdout
    assert "demo_randomized: not comparable: training is demo_clean_50x50 here" in text


def test_what_is_left_to_each_run_is_taken_to_agree() -> None:
    values = answer("diff", "leaderboard", "robotwin-legacy")
    assert {row["field"]: row["effect"] for row in values["fields"]}["training"] == ""
    assert all(verdict["legal"] for verdict in values["verdicts"].values())
    both = answer("diff", "robotwin-legacy", "robotwin-2026-08")
    assert {row["field"] for row in both["fields"]} == {"errors", "instruction_split of demo_clean"}


def test_diff_of_unequal_configurations() -> None:
    values = answer("diff", "leaderboard", "lerobot")
    assert list(values["verdicts"]) == ["demo_clean"]
    assert "demo_randomized: evaluated under one of the two alone" in run("diff", "leaderboard", "lerobot").stdout


def test_diff_with_itself_and_all_fields() -> None:
    values = answer("diff", "leaderboard", "leaderboard")
    assert values["fields"] == []
    assert all(verdict["reason"] == "comparable: the same terms" for verdict in values["verdicts"].values())
    assert len(answer("diff", "leaderboard", "leaderboard", "--all")["fields"]) == 19


def test_drift(tmp_path: Path) -> None:
    path = bundled("task_configs") / "protocols/leaderboard.yaml"
    assert answer("drift", "leaderboard", str(path))["changes"] == []
    assert "nothing has changed against protocol leaderboard" in run("drift", "leaderboard", str(path)).stdout

    values = yaml.safe_load(path.read_text())
    values["trials_per_task"] = 25
    newer = tmp_path / "newer.yaml"
    newer.write_text(yaml.safe_dump(values))
    result = run("drift", "leaderboard", str(newer))
    assert result.exit_code == 1
    assert "trials_per_task" in result.stdout
    assert "1 of 19 fields have changed" in result.stdout
    as_json = run("drift", "leaderboard", str(newer), "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["changes"] == [{"name": "trials_per_task", "stored": "100", "found": "25"}]
