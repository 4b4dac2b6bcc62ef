"""The label of a score: which training data met which configuration. Computed from provenance, never claimed."""

from __future__ import annotations

from dataclasses import dataclass

from evalkit.protocol.modes import CLEAN, RANDOMIZED
from evalkit.provenance.ancestry import ancestry
from evalkit.provenance.card import CARD_FILE, TrainingCard

__all__ = ["PRIVILEGED", "Label", "ancestry", "label"]

PRIVILEGED = "privileged"
_TARGETS = {CLEAN: "c", RANDOMIZED: "r"}


@dataclass(frozen=True, kw_only=True)
class Label:
    """Name of a score, with the reasons for it."""

    text: str
    """``<training data>2<evaluation>``: ``c``, ``r``, ``mixed`` or ``?`` for the data, ``c``, ``r`` or ``?`` for the
    configuration; or ``"privileged"``."""
    reasons: tuple[str, ...]
    """One line each."""


def label(card: TrainingCard | None, config: str, *, privileged: bool = False, under: str = "") -> Label:
    """Label of the score of a checkpoint under a configuration.

    Training data is that of the checkpoint and of every checkpoint its weights came from: one randomized
    demonstration anywhere in the ancestry rules out ``c2c`` and ``c2r``, and one gap in it makes the data unknown.

    Args:
        card: the checkpoint's training card, or None if it has none.
        config: name of the configuration it is evaluated under.
        privileged: whether the policy is told what no robot could know.
        under: what else than the leaderboard's protocol the score is measured under, e.g. ``"x-vla"``. It stands beside
            the label, so that no such score is taken for one of the leaderboard's names.
    """
    found = _label(card, config, privileged)
    return Label(text=f"{found.text} ({under})", reasons=found.reasons) if under else found


def _label(card: TrainingCard | None, config: str, privileged: bool) -> Label:
    if privileged:
        return Label(text=PRIVILEGED, reasons=("the policy is told what no robot could know",))
    seen, gaps = _training_data(card)
    if gaps:
        source, reasons = "?", gaps
    elif seen == {CLEAN}:
        source, reasons = "c", (f"all training data is {CLEAN}",)
    elif seen == {RANDOMIZED}:
        source, reasons = "r", (f"all training data is {RANDOMIZED}",)
    else:
        source, reasons = "mixed", (f"training data holds {CLEAN} and {RANDOMIZED}",)
    if config not in _TARGETS:
        reasons = (*reasons, f"{config} is neither {CLEAN} nor {RANDOMIZED}")
    return Label(text=f"{source}2{_TARGETS.get(config, '?')}", reasons=reasons)


def _training_data(card: TrainingCard | None) -> tuple[set[str], tuple[str, ...]]:
    """Configurations seen in the whole ancestry, and what isn't known about it."""
    if card is None:
        return set(), (f"no {CARD_FILE}: the training data is unknown",)
    seen: set[str] = set()
    gaps: list[str] = []
    for who, found in ancestry(card):
        if isinstance(found, str):
            gaps.append(found)
            continue
        if not found.data:
            gaps.append(f"{who} lists no training data")
        for source in found.data:
            if source.config in _TARGETS:
                seen.add(source.config)
            else:
                gaps.append(f"{who} was trained on {source.task} data of unknown configuration {source.config!r}")
    return seen, tuple(dict.fromkeys(gaps))
