"""Every finding: a case in which it is made, and the same case mended, in which it isn't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import card, parent_of, source

from evalkit.core.errors import UserError
from evalkit.core.locations import bundled
from evalkit.core.tasks import TASKS
from evalkit.provenance.card import DataSource, TrainingCard, read_card
from evalkit.provenance.rules import Requirement, check, data_digest, require_one_checkpoint

BOARD = Requirement(config="demo_clean", episodes_per_task=50, tasks=50, first_seed=100_000)
EVALUATED = {("click_bell", "demo_clean"): frozenset(range(100_000, 100_100))}
RUN = Path("runs/mine/step_30000")


def sound(*sources: DataSource, **changes: Any) -> TrainingCard:
    """A card without any finding under the leaderboard's requirement, unless ``changes`` make one."""
    made = card(*(sources or board()), **changes)
    return made if "normalisation_digest" in changes else replace(made, normalisation_digest=data_digest(made))


def board(**changes: Any) -> tuple[DataSource, ...]:
    return tuple(source(task, **{"digest": f"data of {task}", "assets": "official", **changes}) for task in TASKS)


def codes(training: TrainingCard | None, **settings: Any) -> list[str]:
    arguments = {"folder": RUN, "evaluated": EVALUATED, "requirement": BOARD, **settings}
    findings = check(training, **arguments)
    assert all("\n" not in finding.text for finding in findings)
    assert [finding.severity for finding in findings] == sorted(finding.severity for finding in findings)
    return [finding.code for finding in findings]


def text_of(code: str, training: TrainingCard | None, **settings: Any) -> str:
    arguments = {"folder": RUN, "evaluated": EVALUATED, "requirement": BOARD, **settings}
    [text] = [finding.text for finding in check(training, **arguments) if finding.code == code]
    return text


def test_a_sound_card_has_no_finding() -> None:
    assert codes(sound()) == []
    assert codes(sound(parent=parent_of(sound(), "runs/mine/step_10000"))) == []


def test_no_card() -> None:
    assert codes(None) == ["no_card"]


# Ancestors


@pytest.mark.parametrize("outside", [True, False])
def test_a_parent_without_a_card(outside: bool) -> None:
    path = "elsewhere/step_5" if outside else "runs/mine/step_5"
    training = sound(parent=parent_of(None, path))
    assert codes(training) == ["parent_without_card"]
    assert ("outside this run's folder" in text_of("parent_without_card", training)) == outside
    assert codes(sound(parent=parent_of(sound(), path))) == []


def test_the_parents_parent_counts() -> None:
    middle = sound(parent=parent_of(None, "base/step_1"))
    training = sound(parent=parent_of(middle, "middle/step_2"))
    assert codes(training) == ["parent_without_card"]
    assert "its ancestor base/step_1" in text_of("parent_without_card", training)


def test_a_parents_broken_card() -> None:
    broken = replace(parent_of(sound()), card={"policy": "x"})
    assert codes(sound(parent=broken)) == ["parent_card_unreadable"]


def test_weights_from_nowhere() -> None:
    assert codes(sound(initial_weights="pi0_base")) == ["unknown_weights"]
    assert codes(sound(initial_weights="random")) == []


# Data


def test_no_data() -> None:
    assert "no_data" in codes(sound(data=()))


def test_a_configuration_nobody_knows() -> None:
    training = sound(*board()[1:], replace(board()[0], config="demo_mine"))
    assert "unknown_config" in codes(training)
    assert "'demo_mine'" in text_of("unknown_config", training)


@pytest.mark.parametrize(
    ("changes", "requirement_broken"),
    [
        ({}, None),
        ({"tasks": 49}, "wrong_tasks"),
        ({"episodes": 51}, "wrong_episodes"),
        ({"episodes": 49}, "wrong_episodes"),
        ({"config": "demo_randomized"}, "wrong_config"),
    ],
)
def test_fifty_of_each_of_fifty(changes: Mapping[str, Any], requirement_broken: str | None) -> None:
    first, *others = board()
    first = replace(first, **{key: value for key, value in changes.items() if key != "tasks"})
    if episodes := changes.get("episodes"):
        first = replace(first, seeds=tuple(range(episodes)))
    training = sound(*others) if "tasks" in changes else sound(first, *others)
    found = codes(training)
    expected = [requirement_broken] if requirement_broken else []
    assert found == (["wrong_config", "wrong_tasks"] if requirement_broken == "wrong_config" else expected)
    assert codes(training, requirement=None) == []


def test_numbers_of_demonstrations_are_named() -> None:
    first, *others = board()
    training = sound(replace(first, episodes=51, seeds=tuple(range(51))), *others)
    assert text_of("wrong_episodes", training) == (
        "1 of 50 tasks don't have the protocol's 50 demonstrations, e.g. adjust_bottle has 51"
    )
    assert text_of("wrong_tasks", sound(*others)) == "trained on demo_clean of 49 tasks; the protocol has 50"


def test_randomized_data_of_an_ancestor_counts() -> None:
    parent = sound(*board(config="demo_randomized"))
    training = sound(parent=parent_of(parent, "runs/mine/step_1"))
    assert codes(training) == ["wrong_config"]


def test_the_ancestors_same_demonstrations_count_once_and_others_are_more() -> None:
    again = sound(parent=parent_of(sound(), "runs/mine/step_1"))
    assert codes(again) == []
    more = sound(*(replace(made, digest=f"more {made.task}") for made in board()))
    assert codes(sound(parent=parent_of(more, "runs/mine/step_1"))) == ["wrong_episodes"]


def test_assets() -> None:
    assert codes(sound(*board(assets="stand-in"))) == ["assets"]
    assert codes(sound(*board(assets="unknown"))) == ["assets"]


# Scenes


def with_seeds(*seeds: int, config: str = "demo_clean", task: str = "click_bell") -> TrainingCard:
    changed = [
        replace(made, seeds=(*seeds, *made.seeds[len(seeds) :])) if made.task == task else made for made in board()
    ]
    return sound(*changed)


def test_an_evaluation_scene_that_was_trained_on() -> None:
    training = with_seeds(100_003, 100_007)
    assert codes(training) == ["seed_overlap", "seed_range"]
    assert text_of("seed_overlap", training) == (
        "2 evaluation scenes were trained on, e.g. click_bell demo_clean seed 100003 by the checkpoint"
    )


@pytest.mark.parametrize(
    "training",
    [
        with_seeds(99_999),
        with_seeds(1, 2),
    ],
)
def test_scenes_below_the_evaluations(training: TrainingCard) -> None:
    assert codes(training) == []


def test_the_same_seed_of_another_task_or_configuration_is_another_scene() -> None:
    assert codes(with_seeds(100_003, task="lift_pot")) == ["seed_range"]
    other = {("click_bell", "demo_randomized"): frozenset([100_003])}
    assert codes(with_seeds(100_003), evaluated=other) == ["seed_range"]


def test_overlap_with_a_lower_base_needs_no_range() -> None:
    """An evaluation that starts at seed 0 meets the demonstrations' scenes."""
    assert codes(sound(), evaluated={("click_bell", "demo_clean"): frozenset([3, 60])}) == ["seed_overlap"]
    assert codes(sound(), evaluated={("click_bell", "demo_clean"): frozenset([60])}) == []


def test_an_ancestors_scenes_count() -> None:
    training = sound(parent=parent_of(with_seeds(100_001), "runs/mine/step_1"))
    assert "seed_overlap" in codes(training)
    assert "by its ancestor runs/mine/step_1" in text_of("seed_overlap", training)


def test_demonstrations_without_seeds() -> None:
    first, *others = board()
    assert codes(sound(replace(first, seeds=()), *others)) == ["seeds_unknown"]
    assert text_of("seeds_unknown", sound(replace(first, seeds=()), *others)).startswith("50 demonstrations")


# Statistics


def test_statistics_of_other_data() -> None:
    assert codes(sound(normalisation_digest="e" * 64)) == ["statistics_foreign"]
    assert codes(sound(normalisation_digest="")) == ["statistics_unknown"]


def test_statistics_of_an_ancestors_data() -> None:
    parent = sound(*board(digest="older"))
    training = sound(normalisation_digest=data_digest(parent), parent=parent_of(parent, "runs/mine/step_1"))
    assert "statistics_inherited" in codes(training)
    assert "statistics_foreign" not in codes(training)
    assert text_of("statistics_inherited", training).endswith("the data of its ancestor runs/mine/step_1")


def test_the_order_of_the_data_is_part_of_its_digest() -> None:
    training = sound()
    assert data_digest(replace(training, data=training.data[::-1])) != data_digest(training)


# Resume pointers


def recipe(**settings: Any) -> dict[str, Any]:
    return {"steps": 30_000, "optimizer": {"name": "adamw", **settings}}


@pytest.mark.parametrize("key", ["optimizer_path", "latest_log_dir"])
def test_a_pointer_into_somebody_elses_run(key: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "step_5"
    assert codes(sound(recipe=recipe(**{key: str(tmp_path / "theirs/state")})), folder=folder) == ["foreign_resume"]
    assert codes(sound(recipe=recipe(**{key: str(tmp_path / "mine/state")})), folder=folder) == []
    assert codes(sound(recipe=recipe(**{key: None})), folder=folder) == []


def test_all_four_keys_are_named() -> None:
    counters = {"latest_global_step": 9, "latest_epoch": 2}
    settings = {"optimizer_path": "/theirs/state", "latest_log_dir": "/theirs", **counters}
    text = text_of("foreign_resume", sound(recipe=recipe(**settings)))
    assert "optimizer_path: /theirs/state" in text
    assert "latest_log_dir: /theirs" in text
    assert "latest_global_step: 9, latest_epoch: 2" in text_of("foreign_resume", sound(recipe=recipe(**counters)))


def test_ways_out_of_the_run_are_followed(tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    mine.mkdir()
    (mine / "link").symlink_to(theirs)
    for path in (mine / "../theirs/state", mine / "link/state", tmp_path / "mine2/state"):
        assert codes(sound(recipe=recipe(optimizer_path=str(path))), folder=mine / "step_5") == ["foreign_resume"]


def test_an_ancestors_pointer_counts_for_its_own_run(tmp_path: Path) -> None:
    older = str(tmp_path / "older/step_1")
    own = sound(recipe=recipe(optimizer_path=str(tmp_path / "older/state")))
    assert codes(sound(parent=parent_of(own, older)), folder=tmp_path / "mine/step_5") == []
    foreign = sound(recipe=recipe(optimizer_path=str(tmp_path / "mine/state")))
    assert codes(sound(parent=parent_of(foreign, older)), folder=tmp_path / "mine/step_5") == ["foreign_resume"]


# Code


def test_code() -> None:
    assert codes(sound(code_dirty=True)) == ["code_unknown"]
    assert codes(sound(code_commit="unknown")) == ["code_unknown"]


# Halves of an average


def test_halves_of_one_checkpoint() -> None:
    require_one_checkpoint({"demo_clean": "a" * 64, "demo_randomized": "a" * 64})


@pytest.mark.parametrize(
    ("halves", "what"),
    [
        ({"demo_clean": "a" * 64, "demo_randomized": "b" * 64}, "different checkpoints and have no average"),
        ({"demo_clean": "a" * 64, "demo_randomized": None}, "demo_randomized doesn't say which checkpoint"),
        ({"demo_clean": None, "demo_randomized": None}, "demo_clean doesn't say which checkpoint"),
    ],
)
def test_halves_of_different_checkpoints(halves: dict[str, str | None], what: str) -> None:
    with pytest.raises(UserError, match=what):
        require_one_checkpoint(halves)


def test_the_checkpoint_that_comes_with_evalkit() -> None:
    folder = bundled("checkpoints") / "standin_clean50/step_30000"
    training = read_card(folder)
    assert training is not None
    assert training.normalisation_digest == data_digest(training)
    assert codes(training, folder=folder, evaluated={}) == ["wrong_tasks", "assets", "code_unknown"]
