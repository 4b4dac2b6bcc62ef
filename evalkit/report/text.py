"""Numbers and provenance as text."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from evalkit.provenance.card import TrainingCard


def percent(fraction: float, digits: int) -> str:
    """A fraction in percent, halves rounded up: 0.8805 is 88.1, whatever its binary form is next to."""
    return _rounded(Decimal(repr(float(fraction))) * 100, digits)


def rounded(value: float, digits: int) -> str:
    """A number with a fixed number of decimals, halves rounded up."""
    return _rounded(Decimal(repr(float(value))), digits)


def interval(low: float, high: float, digits: int = 1) -> str:
    """An interval in percent, e.g. ``"48.0 to 73.8"``."""
    return f"{percent(low, digits)} to {percent(high, digits)}"


def duration(seconds: float) -> str:
    """E.g. ``"8 h 52 min"``, ``"3 min 5 s"``, ``"4.2 s"``."""
    if seconds < 60:
        return f"{rounded(seconds, 1)} s"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def number(value: int, noun: str) -> str:
    """E.g. ``"1 task"``, ``"12 tasks"``."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def count(value: int) -> str:
    """E.g. ``"469,787"``."""
    return f"{value:,}"


def parameters(value: int) -> str:
    """E.g. ``"7.65 M"``."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{rounded(value / size, 2)} {unit}"
    return str(value)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted name -> value."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{dotted}."))
        else:
            flat[dotted] = value
    return flat


def demonstrations(card: TrainingCard) -> list[str]:
    """One line per configuration of the training data, e.g. ``"demo_clean: 300 episodes of 6 tasks, 56,374 clips"``."""
    lines = []
    for config in sorted({source.config for source in card.data}):
        sources = [source for source in card.data if source.config == config]
        episodes, clips = sum(source.episodes for source in sources), sum(source.clips for source in sources)
        tasks = len({source.task for source in sources})
        assets = ", ".join(sorted({source.assets for source in sources}))
        lines.append(
            f"{config}: {number(episodes, 'episode')} of {number(tasks, 'task')}, {number(clips, 'clip')}, "
            f"{assets} assets"
        )
    return lines


def _rounded(value: Decimal, digits: int) -> str:
    return str(value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))
