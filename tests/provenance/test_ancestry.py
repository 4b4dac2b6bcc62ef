from __future__ import annotations

from synthetic import card, parent_of

from evalkit.provenance.ancestry import ancestry, lineage


def test_nearest_first_down_to_random_weights() -> None:
    training = card(step=3, parent=parent_of(card(step=2, parent=parent_of(card(step=1), "a/step_1")), "b/step_2"))
    assert [made.card.step for made in lineage(training) if made.card] == [3, 2, 1]
    assert [made.path for made in lineage(training)] == [None, "b/step_2", "a/step_1"]
    assert all(made.gap is None for made in lineage(training))


def test_a_gap_ends_the_line() -> None:
    *_, last = lineage(card(parent=parent_of(None, "a/step_1")))
    assert last.card is None
    assert last.gap is not None
    assert last.gap.kind == "no_card"
    [only] = lineage(card(initial_weights="base"))
    assert only.card is not None
    assert only.gap is not None
    assert only.gap.kind == "unknown_weights"


def test_gaps_come_last_as_text() -> None:
    found = list(ancestry(card(initial_weights="base")))
    assert [who for who, _ in found] == ["the checkpoint", "the checkpoint"]
    assert found[1][1] == "the checkpoint started from base, whose training data is unknown"
