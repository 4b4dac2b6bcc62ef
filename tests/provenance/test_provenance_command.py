from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from synthetic import parent_of
from typer.testing import CliRunner, Result

from evalkit.cli import provenance
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.core.tasks import TASKS
from evalkit.policy.checkpoint import POLICY_FILE
from evalkit.provenance.card import CARD_FILE, TrainingCard, read_card, write_card
from evalkit.provenance.rules import data_digest

OURS = bundled("checkpoints") / "standin_clean50/step_30000"


def run(*arguments: str) -> Result:
    app = typer.Typer()
    provenance.register(app)
    app.command("other")(lambda: None)
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["provenance", *arguments])


def answer(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def card() -> TrainingCard:
    found = read_card(OURS)
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the checkpoint, in a working folder without local seed lists."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(OURS, tmp_path / "mine/step_30000"))


def board(found: TrainingCard) -> TrainingCard:
    """The card, as if it were of the leaderboard's training data."""
    first = replace(found.data[0], assets="official")
    data = tuple(replace(first, task=task, digest=f"data of {task}") for task in TASKS)
    changed = replace(found, data=data, code_commit="6b71d3c", code_dirty=False)
    return replace(changed, normalisation_digest=data_digest(changed))


def test_the_checkpoint_that_comes_with_evalkit(folder: Path) -> None:
    values = answer(str(folder))
    assert values["training"] == "demo_clean_50x14"
    assert {config: label["text"] for config, label in values["labels"].items()} == {
        "demo_clean": "c2c",
        "demo_randomized": "c2r",
    }
    assert [finding["code"] for finding in values["findings"]] == ["wrong_tasks", "assets", "code_unknown"]
    result = run(str(folder))
    assert result.exit_code == 0
    assert "700 demonstrations of 14 tasks" in result.stdout
    assert "random weights" in result.stdout
    assert "1 error, 2 warnings" in result.stdout


def test_strict(folder: Path) -> None:
    assert run(str(folder), "--strict").exit_code == 1
    write_card(folder, board(card()))
    result = run(str(folder), "--strict")
    assert result.exit_code == 0, result.stdout
    assert "0 errors, 0 warnings" in result.stdout
    assert answer(str(folder))["training"] == "demo_clean_50x50"


def test_no_card(folder: Path) -> None:
    (folder / CARD_FILE).unlink()
    values = answer(str(folder))
    assert values["card"] is None
    assert values["training"] == "unknown"
    assert {label["text"] for label in values["labels"].values()} == {"?2c", "?2r"}
    result = run(str(folder), "--strict")
    assert result.exit_code == 1
    assert "no training_card.json: nothing is known of its training" in result.stdout


def test_ancestors_are_drawn_below(folder: Path) -> None:
    older = replace(card(), parent=parent_of(None, "base/step_7 [x]"), initial_weights="base/step_7 [x]")
    write_card(folder, replace(card(), parent=parent_of(older, "older/step_9"), initial_weights="older/step_9"))
    lines = run(str(folder)).stdout.splitlines()
    places = [
        next(row for row, line in enumerate(lines) if name in line) for name in ("older/step_9", "base/step_7 [x]")
    ]
    assert places == sorted(places)
    assert any("has no training_card.json" in line for line in lines)
    assert "?2c" in run(str(folder)).stdout


def test_scenes_of_the_seed_lists_are_compared(folder: Path) -> None:
    seeds = tuple(range(100_000, 100_050))
    first = card().data[0]
    changed = replace(card(), data=(replace(first, seeds=seeds), *card().data[1:]))
    write_card(folder, changed)
    accepted = provenance.known_scenes()[first.task, first.config] & set(seeds)
    assert len(accepted) >= 10
    [text] = [finding["text"] for finding in answer(str(folder))["findings"] if finding["code"] == "seed_overlap"]
    assert text.startswith(f"{len(accepted)} evaluation scenes were trained on, e.g. {first.task} demo_clean seed")


def test_a_local_seed_list_counts(folder: Path) -> None:
    entry = {"seed": 5, "accepted": True, "reason": "ok", "config_digest": "x"}
    rejected = {**entry, "seed": 4, "accepted": False, "reason": "plan_failed"}
    local = Path("results/seeds/abc/click_bell.demo_clean.jsonl")
    local.parent.mkdir(parents=True)
    local.write_text("".join(json.dumps(row) + "\n" for row in (entry, rejected)))
    codes = [finding["code"] for finding in answer(str(folder))["findings"]]
    assert 5 in next(source.seeds for source in card().data if source.task == "click_bell")
    assert "seed_overlap" in codes


def test_a_protocol_of_others_asks_for_nothing(folder: Path) -> None:
    result = run(str(folder), "--protocol", "x-wam")
    assert isinstance(result.exception, UserError)
    assert "protocol x-wam asks for no training data to check; leaderboard does" in str(result.exception)
    assert isinstance(run(str(folder), "--protocol", "bord").exception, UnknownNameError)


def test_a_damaged_checkpoint_is_refused(folder: Path) -> None:
    (folder / POLICY_FILE).unlink()
    assert isinstance(run(str(folder)).exception, UserError)
