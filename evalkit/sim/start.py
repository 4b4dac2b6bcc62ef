"""What to say of a simulator that doesn't start: its own words, and where the rest of them is."""

from __future__ import annotations

from pathlib import Path

from evalkit.core.errors import SimulatorError

START = "start"
"""Kind of error of a simulator whose process ended, or gave no answer, before it could do anything."""
_READ_BYTES = 20_000


def start_error(name: str, error: SimulatorError, log_path: Path | None, offset: int) -> SimulatorError:
    """The error of a simulator that doesn't start.

    Args:
        name: what it is.
        error: what was seen from outside.
        log_path: its log, if it has one.
        offset: length of the log before the start, in bytes.
    """
    text = ""
    if log_path is not None and log_path.exists():
        with log_path.open("rb") as log:
            log.seek(offset)
            text = log.read(_READ_BYTES).decode(errors="replace")
    said = telling_line(text) if error.kind in ("crash", "hang") else ""  # else it told us itself
    seen = str(error).partition("; log: ")[0]
    words = f"{said} ({seen})" if said else seen
    where = f"; log: {log_path}" if log_path is not None else ""
    tail = error.traceback_tail or text
    return SimulatorError(START, f"the {name} doesn't start: {words}{where}", signal=error.signal, traceback_tail=tail)


def telling_line(text: str) -> str:
    """The line of a log that says why: the first exception's own, else the first that is no warning; else empty."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last):" in lines:
        after = lines[lines.index("Traceback (most recent call last):") + 1 :]
        return next((line for line in after if not line.startswith(" ")), lines[-1].strip())
    return next((line for line in lines if "warn" not in line.lower() and not line.startswith(" ")), "")
