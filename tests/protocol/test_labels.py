from __future__ import annotations

from dataclasses import replace

import pytest
from synthetic import card, parent_of, source

from evalkit.protocol.labels import label
from evalkit.provenance.card import TrainingCard

CLEAN, RANDOMIZED = source(), source(config="demo_randomized")


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (None, "?"),
        (card(CLEAN), "c"),
        (card(RANDOMIZED), "r"),
        (card(CLEAN, RANDOMIZED), "mixed"),
        (card(source(config="unknown")), "?"),
        (card(CLEAN, source(config="demo_custom")), "?"),
        (card(data=()), "?"),
        (card(CLEAN, parent=parent_of(card(CLEAN))), "c"),
        (card(CLEAN, parent=parent_of(card(RANDOMIZED))), "mixed"),
        (card(RANDOMIZED, parent=parent_of(card(RANDOMIZED))), "r"),
        (card(CLEAN, parent=parent_of(None)), "?"),
        (card(CLEAN, parent=parent_of(card(CLEAN, parent=parent_of(card(RANDOMIZED))))), "mixed"),
        (card(CLEAN, parent=parent_of(card(CLEAN, parent=parent_of(None)))), "?"),
        (card(CLEAN, initial_weights="pi0_base"), "?"),
    ],
)
@pytest.mark.parametrize(("config", "target"), [("demo_clean", "c"), ("demo_randomized", "r"), ("demo_custom", "?")])
def test_training_data_decides(training: TrainingCard | None, expected: str, config: str, target: str) -> None:
    found = label(training, config)
    assert found.text == f"{expected}2{target}"
    assert found.reasons
    assert all("\n" not in reason for reason in found.reasons)


def test_no_card_is_said() -> None:
    assert label(None, "demo_clean").reasons == ("no training_card.json: the training data is unknown",)


def test_an_ancestor_without_a_card_is_named() -> None:
    training = card(CLEAN, parent=parent_of(card(CLEAN, parent=parent_of(None, "base/step_1")), "middle/step_2"))
    (reason,) = label(training, "demo_clean").reasons
    assert reason == "its ancestor base/step_1 has no training_card.json: its training data is unknown"


def test_weights_from_elsewhere_are_an_unknown_ancestor() -> None:
    (reason,) = label(card(CLEAN, initial_weights="pi0_base"), "demo_clean").reasons
    assert reason == "the checkpoint started from pi0_base, whose training data is unknown"


@pytest.mark.parametrize("broken", [{}, {"data": 3}, {"policy": "x"}])
def test_an_ancestors_broken_card_is_a_gap(broken: dict[str, object]) -> None:
    training = card(CLEAN, parent=replace(parent_of(card(CLEAN)), card=broken))
    found = label(training, "demo_randomized")
    assert found.text == "?2r"
    assert "can't be read" in found.reasons[0]


def test_privileged_policies_have_no_other_label() -> None:
    assert label(card(CLEAN), "demo_clean", privileged=True).text == "privileged"
    assert label(None, "demo_randomized", privileged=True).text == "privileged"
