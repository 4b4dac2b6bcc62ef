from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from synthetic import card, parent_of, source

from evalkit.protocol.training_set import training_of_card, training_of_text, training_parts
from evalkit.provenance.card import TrainingCard

TASKS = tuple(f"task_{number}" for number in range(50))


def sources(config: str, episodes: int, tasks: int = 50, **changes: Any) -> list[Any]:
    return [source(task, config, episodes=episodes, digest=f"{config}{task}", **changes) for task in TASKS[:tasks]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("demo_clean_50x50", "demo_clean_50x50"),
        ("clean_50x50+randomized_500x50", "demo_clean_50x50+demo_randomized_500x50"),
        ("randomized_500x50 + clean_50x50", "demo_clean_50x50+demo_randomized_500x50"),
        ("not stated", "unknown"),
        ("clean+randomized full", "unknown"),
        ("robotwin_sft (paper protocol)", "unknown"),
        ("demo_clean_50x50+more", "unknown"),
        ("", "unknown"),
    ],
)
def test_published_names(text: str, name: str) -> None:
    assert training_of_text(text) == name


@pytest.mark.parametrize(
    ("training", "name"),
    [
        (None, "unknown"),
        (card(*sources("demo_clean", 50)), "demo_clean_50x50"),
        (card(*sources("demo_clean", 50, tasks=49)), "demo_clean_50x49"),
        (card(*sources("demo_clean", 50)[1:], *sources("demo_clean", 51)[:1]), "demo_clean_50-51x50"),
        (
            card(*sources("demo_randomized", 500), *sources("demo_clean", 50)),
            "demo_clean_50x50+demo_randomized_500x50",
        ),
        (
            card(*sources("demo_clean", 50), parent=parent_of(card(*sources("demo_randomized", 500)))),
            "demo_clean_50x50+demo_randomized_500x50",
        ),
        (
            card(*sources("demo_clean", 50), parent=parent_of(card(*sources("demo_clean", 50)))),
            "demo_clean_50x50",
        ),
        (card(*sources("demo_clean", 50), parent=parent_of(None)), "unknown"),
        (card(*sources("demo_clean", 50), initial_weights="base"), "unknown"),
        (card(source(config="custom")), "unknown"),
        (card(data=()), "unknown"),
    ],
)
def test_names_of_cards(training: TrainingCard | None, name: str) -> None:
    assert training_of_card(training) == name


def test_other_demonstrations_of_an_ancestor_add_up() -> None:
    parent = card(replace(source(), digest="other"))
    assert training_of_card(card(source(), parent=parent_of(parent))) == "demo_clean_100x1"


def test_parts() -> None:
    assert training_parts("demo_clean_50x50+demo_randomized_500x50") == {
        "demo_clean": (50, 50),
        "demo_randomized": (500, 50),
    }
    assert training_parts("unknown") is None
    assert training_parts("demo_clean_50-51x50") is None
