"""Training data as one name: ``demo_clean_50x50+demo_randomized_500x50``.

Each part is ``<configuration>_<episodes of each task>x<tasks>``; parts are in alphabetical order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from evalkit.protocol.comparability import UNKNOWN
from evalkit.protocol.modes import CLEAN, RANDOMIZED
from evalkit.provenance.ancestry import ancestry
from evalkit.provenance.card import DataSource, TrainingCard

_PART = re.compile(r"(?:demo_)?(clean|randomized)_(\d+)x(\d+)")


def training_of_text(text: str) -> str:
    """The canonical name of training data written as a published table writes it, or ``"unknown"``.

    ``clean_50x50+randomized_500x50`` and ``demo_clean_50x50`` are understood; whatever isn't of this form
    ("not stated", "full") is unknown, since it can't be compared.
    """
    parts = [_PART.fullmatch(part.strip()) for part in text.split("+")]
    if any(part is None for part in parts):
        return UNKNOWN
    return "+".join(sorted(f"demo_{part[1]}_{int(part[2])}x{int(part[3])}" for part in parts if part))


def training_parts(name: str) -> Mapping[str, tuple[int, int]] | None:
    """Configuration -> (episodes of each task, tasks) of a canonical name, or None if it isn't known or not even."""
    parts = [_PART.fullmatch(part) for part in name.split("+")]
    if any(part is None for part in parts):
        return None
    return {f"demo_{part[1]}": (int(part[2]), int(part[3])) for part in parts if part}


def training_of_card(card: TrainingCard | None) -> str:
    """The canonical name of all training data in a checkpoint's ancestry, or ``"unknown"`` if anything is.

    Demonstrations learnt from by both the checkpoint and an ancestor count once. Where tasks have different numbers of
    episodes the name gives the range, e.g. ``demo_clean_49-50x50``.
    """
    if card is None:
        return UNKNOWN
    sources: list[DataSource] = []
    for _, found in ancestry(card):
        if isinstance(found, str) or not found.data:
            return UNKNOWN
        sources += found.data
    if any(source.config not in (CLEAN, RANDOMIZED) for source in sources):
        return UNKNOWN
    counts: dict[str, list[int]] = defaultdict(list)
    for (_, config), episodes in _episodes(sources).items():
        counts[config].append(episodes)
    return "+".join(f"{config}_{_range(found)}x{len(found)}" for config, found in sorted(counts.items()))


def _episodes(sources: Iterable[DataSource]) -> dict[tuple[str, str], int]:
    """(Task, configuration) -> episodes; the same demonstrations, told by their digest, count once."""
    distinct = {(source.task, source.config, source.digest): source.episodes for source in sources}
    episodes: dict[tuple[str, str], int] = defaultdict(int)
    for (task, config, _), count in distinct.items():
        episodes[task, config] += count
    return episodes


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"
