"""One row of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, and what to do about it."""

    name: str
    status: Status
    """``missing``: a run can't work. ``warning``: it works, but slower or with less."""
    found: str
    remedy: str = ""
    """One line, empty if the status is ``ok``."""
