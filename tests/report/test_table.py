from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from synthetic import OFFICIAL, TWELVE, card, make_run, source, split

from evalkit.aggregate.summary import summarise
from evalkit.aggregate.tasks_like_these import tasks_like_these
from evalkit.core.outcome import Outcome
from evalkit.core.tasks import TASKS
from evalkit.report.table import render, timing_line
from evalkit.store.info import Stopping

CLEAN, RANDOMIZED = "demo_clean", "demo_randomized"
BOTH = (CLEAN, RANDOMIZED)


def shown(folder: Path, outcomes: dict[tuple[str, str], Any], width: int = 100, **run: Any) -> str:
    console = Console(width=width, record=True, file=(folder / "ignored").open("w"), force_terminal=True)
    console.print(render(summarise(make_run(folder / "run", outcomes, **run))))
    console.file.close()
    return console.export_text()


@pytest.mark.parametrize("width", [80, 100])
def test_fifty_tasks_fit_without_a_cut(tmp_path: Path, width: int) -> None:
    outcomes = {(task, config): split(100, 100) for task in TASKS for config in BOTH}
    training = card(*(source(task, assets="official") for task in TASKS))
    text = shown(tmp_path, outcomes, width, training=training, backend=OFFICIAL)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    (row,) = (line for line in lines if line.startswith("shake_bottle_horizontally"))
    assert row.count("100/100 100.0 96.3–100.0") == 2
    assert "not a leaderboard number" not in text
    assert "c2c complete" in text
    assert "average complete" in text


def test_partial_run_says_what_it_is_not(tmp_path: Path) -> None:
    outcomes = {(task, config): split(3, 5) for task in TWELVE for config in BOTH}
    text = shown(tmp_path, outcomes, training=card())
    assert "STAND-IN ASSETS: not a leaderboard number" in text
    assert "c2c partial" in text
    assert "12 of 50 tasks, 60 of 60 trials" in text
    assert "average" not in text
    assert "mean of both" in text
    assert "demo_clean: 50 episodes of 1 task, 5,000 clips, stand-in assets" in text
    assert "checkpoints/standin_clean50/step_30000" in text
    assert "batch size 64" in text
    assert "all training data is demo_clean" in text


def test_missing_trials_are_named_and_bound_the_rate(tmp_path: Path) -> None:
    endings = [Outcome.POLICY_ERROR, Outcome.SIM_ERROR, Outcome.SUCCESS, Outcome.SUCCESS, None]
    text = shown(tmp_path, {("click_bell", CLEAN): endings})
    (row,) = (line for line in text.splitlines() if line.startswith("click_bell"))
    assert row.split() == ["click_bell", "2/3", "?", "40.0…80.0"]
    assert "?2c incomplete" in text
    assert "can become 40.0 to 80.0" in text
    assert "click_bell seed 100001 (sim_error: crash)" in text
    assert "click_bell seed 100004 (not run)" in text
    assert "the same command with --retry-errors" in text
    assert "1 in click_bell (?2c): counted as failures" in text
    assert "no training_card.json: the training data is unknown" in text


def test_trials_that_only_were_not_run_need_no_retry(tmp_path: Path) -> None:
    assert "--retry-errors" not in shown(tmp_path, {("click_bell", CLEAN): [Outcome.SUCCESS, None]})


def test_unequal_trials_are_said(tmp_path: Path) -> None:
    text = shown(tmp_path, {("click_bell", CLEAN): split(80, 100), ("grab_roller", CLEAN): split(45, 50)})
    assert "85.0" in text
    assert "differ between tasks, which still weigh the same; all trials together: 83.3 %" in text


def test_markup_in_a_recipe_is_shown_not_obeyed(tmp_path: Path) -> None:
    training = card(recipe={"steps": 1, "optimizer": "[red]adam[/]"})
    assert "optimizer [red]adam[/]" in shown(tmp_path, {("click_bell", CLEAN): split(1, 2)}, training=training)


@pytest.mark.parametrize(
    ("assets", "title"), [("official", "│ not a leaderboard number"), ("none", "│ NO ASSETS: not a leaderboard number")]
)
def test_title_of_the_reasons(tmp_path: Path, assets: str, title: str) -> None:
    text = shown(tmp_path, {("click_bell", CLEAN): split(1, 2)}, backend={"backend": "fake", "assets": assets})
    assert title in text
    assert "the simulator is fake, not robotwin" in text


def test_policy_without_a_checkpoint(tmp_path: Path) -> None:
    policy = {"adapter": "noop", "checkpoint": None, "checkpoint_digest": None, "step": None}
    assert "noop, no checkpoint" in shown(tmp_path, {("click_bell", CLEAN): split(0, 2)}, policy=policy)


def test_timing_line(tmp_path: Path) -> None:
    timing = summarise(make_run(tmp_path / "run", {("click_bell", CLEAN): split(1, 4)})).timing
    assert timing is not None
    assert timing_line(timing).plain == (
        "median ms per trial: setup 500, physics 4,000, check 250, render 1,000, inference 750; whole trial 7,000; "
        "simulators at work 58 % of 4 x 10.0 s"
    )


def test_the_interval_for_tasks_like_these_is_named(tmp_path: Path) -> None:
    outcomes = {(task, config): split(place % 6, 5) for place, task in enumerate(TWELVE) for config in BOTH}
    text = shown(tmp_path, outcomes, training=card())
    wide = tasks_like_these([place % 6 / 5 for place in range(12)])
    assert wide
    low, high = f"{100 * wide.low:.1f}", f"{100 * wide.high:.1f}"
    mean, other = text[text.index("mean of 12 tasks") :].splitlines()[:2]
    assert mean.split()[4] == "50.0"
    assert other.split() == ["for", "tasks", "like", "these", *[f"{low}–{high}"] * 2]
    line = ", ".join(f"{name} {low} to {high}" for name in ("c2c", "c2r", "mean of both"))
    assert f"{line} % (cluster bootstrap over tasks)" in " ".join(text.replace("│", "").split())


def test_few_tasks_have_no_interval_for_tasks_like_these(tmp_path: Path) -> None:
    outcomes = {(task, CLEAN): split(place, 7) for place, task in enumerate(TWELVE[:7])}
    assert "like these" not in shown(tmp_path, outcomes, training=card())


def test_a_stopped_run_shows_counts_and_no_rates(tmp_path: Path) -> None:
    stopping = Stopping(rule="until-decided", decision="a-or-b", side="first", alpha=0.05)
    outcomes = {("click_bell", config): [*split(3, 5), None] for config in BOTH}
    text = shown(tmp_path, outcomes, training=card(), stopping=stopping)
    (row,) = (line for line in text.splitlines() if line.startswith("click_bell"))
    assert row.split() == ["click_bell", "3/5", "3/5"]
    assert "c2c stopped" in text
    assert text.count("no score") >= 3
    assert "average" not in text
    assert "mean of both" not in text
    assert "· stopped early by --until-decided: " in text
