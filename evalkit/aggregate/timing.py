"""Where the time of a run went: medians per trial by phase, and how busy the simulators were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from evalkit.core.record import TrialRecord

PHASES = ("setup", "physics", "check", "render", "expert", "inference", "queue", "wall")
"""Phases of ``core.record.Timings``; ``wall`` is the whole trial."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of the scored trials of a run."""

    n: int
    median_ms: Mapping[str, float]
    """Phase -> median over trials, in milliseconds."""
    simulator_s: float
    """Time in which simulators worked, summed over trials."""
    trials_in_flight: int
    """Most trials under way at one instant: the number of simulators at work."""
    active_s: float
    """Wall time in which at least one trial was under way: pauses between resumed sessions don't count."""
    efficiency: float | None
    """``simulator_s / (trials_in_flight * active_s)``, or None if the records carry no start times."""


def timing(records: Sequence[TrialRecord]) -> Timing | None:
    """Times over scored trials, or None if there are none."""
    scored = [record for record in records if record.outcome.is_scored]
    if not scored:
        return None
    medians = {
        phase: round(1000 * median(getattr(record.timings, f"{phase}_s") for record in scored), 3) for phase in PHASES
    }
    in_flight, active_s = _occupancy(_spans(scored))
    simulator_s = sum(sorted(record.timings.simulator_s for record in scored))
    return Timing(
        n=len(scored),
        median_ms=medians,
        simulator_s=round(simulator_s, 3),
        trials_in_flight=in_flight,
        active_s=round(active_s, 3),
        efficiency=round(simulator_s / (in_flight * active_s), 4) if active_s > 0 else None,
    )


def _spans(records: Iterable[TrialRecord]) -> list[tuple[float, float]]:
    spans = []
    for record in records:
        if record.started_at and record.timings.wall_s > 0:
            start_s = datetime.fromisoformat(record.started_at).timestamp()
            spans.append((start_s, start_s + record.timings.wall_s))
    return spans


def _occupancy(spans: Sequence[tuple[float, float]]) -> tuple[int, float]:
    """Largest number of spans open at once, and the length of their union in seconds."""
    events = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])  # ends before starts
    in_flight = most = 0
    active_s, since = 0.0, 0.0
    for instant, change in events:
        if in_flight > 0:
            active_s += instant - since
        in_flight += change
        most, since = max(most, in_flight), instant
    return most, active_s
