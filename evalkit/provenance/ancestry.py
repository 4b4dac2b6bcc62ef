"""The checkpoints that a checkpoint's weights came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evalkit.provenance.card import CARD_FILE, TrainingCard

GapKind = Literal["no_card", "unreadable_card", "unknown_weights"]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Why nothing is known about the weights from here on."""

    kind: GapKind
    text: str


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One checkpoint of a line of ancestors."""

    who: str
    """For messages, e.g. ``"the checkpoint"`` or ``"its ancestor pretrained/step_100"``."""
    path: str | None
    """Path as its descendant's card gives it; None for the checkpoint itself."""
    card: TrainingCard | None
    gap: Gap | None
    """None if the line goes on, or ends at random weights."""


def lineage(card: TrainingCard) -> Iterator[Generation]:
    """The checkpoint and its ancestors, nearest first. A gap can only be in the last one."""
    who, path = "the checkpoint", None
    while True:
        parent = card.parent
        if parent is None:
            gap = None
            if card.initial_weights != "random":
                text = f"{who} started from {card.initial_weights}, whose training data is unknown"
                gap = Gap(kind="unknown_weights", text=text)
            yield Generation(who=who, path=path, card=card, gap=gap)
            return
        yield Generation(who=who, path=path, card=card, gap=None)
        who, path = f"its ancestor {parent.path}", parent.path
        if parent.card is None:
            gap = Gap(kind="no_card", text=f"{who} has no {CARD_FILE}: its training data is unknown")
            yield Generation(who=who, path=path, card=None, gap=gap)
            return
        try:
            card = TrainingCard.from_json(parent.card)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"the training card of {who} can't be read ({type(error).__name__}: {error})"
            yield Generation(who=who, path=path, card=None, gap=Gap(kind="unreadable_card", text=text))
            return


def ancestry(card: TrainingCard) -> Iterator[tuple[str, TrainingCard | str]]:
    """The checkpoint and the checkpoints its weights came from, nearest first.

    Yields:
        Who it is, and its card; or, last, a text that says why the line breaks off.
    """
    for generation in lineage(card):
        if generation.card is not None:
            yield generation.who, generation.card
        if generation.gap is not None:
            yield generation.who, generation.gap.text
