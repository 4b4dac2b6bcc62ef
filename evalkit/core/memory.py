"""Amounts of memory as people write them."""

from __future__ import annotations

import re

from evalkit.core.errors import UserError

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_UNITS["ti"] = 1 << 40
_TEXT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?i?)b?", re.IGNORECASE)


def parse_bytes(text: str, what: str) -> int:
    """Bytes from ``"6GiB"``, ``"6.5 GB"``, ``"800M"`` or ``"1000000"``.

    Args:
        text: as the user wrote it.
        what: names it in the error, e.g. ``"--worker-memory"``.

    Raises:
        UserError: it is no amount of memory, or none at all.
    """
    match = _TEXT.fullmatch(text.strip())
    unit = _UNITS.get(match["unit"].lower()) if match else None
    value = int(float(match["number"]) * unit) if match and unit else 0
    if value <= 0:
        raise UserError(f"{what} is {text!r}: give an amount of memory such as 6GiB or 800MB")
    return value


def format_bytes(number: int) -> str:
    """E.g. ``6.5 GiB``."""
    return f"{number / (1 << 30):.1f} GiB" if number >= 1 << 30 else f"{number / (1 << 20):.0f} MiB"
