"""How long the parts of a trial take: measured by ``evalkit robotwin bench``, or read from trials that were run."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.core.files import write_json
from evalkit.core.locations import home
from evalkit.core.record import TrialRecord

SCHEMA = 1
Key = tuple[str, str]
"""Task and configuration."""


@dataclass(frozen=True, kw_only=True)
class SimulatorRate:
    """What one task under one configuration costs a simulator that has a machine's core to itself."""

    setup_s: float
    """Building and settling a scene."""
    action_s: float
    """One action: physics and the success check."""
    observation_s: float
    """Robot state and pictures of ``cameras`` cameras, once."""
    cameras: int
    expert_s: float | None
    """The scripted expert on an accepted scene; None if none was seen."""
    expert_steps: int | None
    """Actions of the expert's demonstration, at the rate demonstrations are recorded; None if none was seen."""
    n: int
    """Trials or scenes behind these figures, which are medians."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What ``evalkit robotwin bench`` measured on a machine."""

    backend: str
    """``BackendFingerprint.digest``: rates of another world are other rates."""
    renderer: str
    measured_at: str
    """UTC, ISO 8601."""
    host: str
    cpus: int
    start_s: float
    """A worker process from nothing to its first picture."""
    memory_bytes: int
    """Most memory RoboTwin's process held, shared pages not counted."""
    rates: Mapping[Key, SimulatorRate]
    schema: int = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """Plain mapping; ``from_json`` reads it back."""
        values = asdict(self)
        values["rates"] = [
            {"task": task, "config": config, **asdict(rate)} for (task, config), rate in self.rates.items()
        ]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Bench:
        """Inverse of ``to_json``.

        Raises:
            KeyError, TypeError: a field is missing or unknown.
        """
        rates = {}
        for row in map(dict, values["rates"]):
            key = row.pop("task"), row.pop("config")
            rates[key] = SimulatorRate(**row)
        return cls(**{**values, "rates": rates})


def bench_path(backend_digest: str) -> Path:
    """Where the measurement of a world is kept on this machine."""
    return home() / "bench" / f"{backend_digest}.json"


def read_bench(backend_digest: str) -> Bench | None:
    """The measurement of a world on this machine, or None if there is none.

    Raises:
        UserError: the file can't be read.
    """
    path = bench_path(backend_digest)
    if not path.exists():
        return None
    try:
        return Bench.from_json(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} can't be read ({error}): delete it, or measure again with evalkit robotwin bench"
        ) from error


def write_bench(bench: Bench) -> Path:
    """Keep a measurement; one of the same world is replaced."""
    path = bench_path(bench.backend)
    write_json(path, bench.to_json())
    return path


@dataclass(frozen=True, kw_only=True)
class PolicyRate:
    """What a policy needs and how long its trials last."""

    decision_s: float
    """The policy's own time for one decision, median."""
    steps: Mapping[Key, float]
    """Mean number of actions of a trial: one that succeeds ends early."""
    horizon_share: float
    """Mean share of the horizon that its trials used, over all of them: stands for tasks without trials."""
    n: int


def rates_of(records: Iterable[TrialRecord], cameras: int) -> dict[Key, SimulatorRate]:
    """Rates by scored trials of one policy.

    Args:
        records: records of runs in the same world.
        cameras: number of cameras the policy asks for.
    """
    groups: dict[Key, list[TrialRecord]] = defaultdict(list)
    for record in records:
        if record.outcome.is_scored and record.steps and record.policy_calls:
            groups[record.spec.task, record.spec.config].append(record)
    return {key: _rate(group, cameras) for key, group in sorted(groups.items())}


def _rate(records: list[TrialRecord], cameras: int) -> SimulatorRate:
    times = [(record.timings, record.steps, record.policy_calls) for record in records]
    experts = [time.expert_s for time, _, _ in times if time.expert_s > 0]
    return SimulatorRate(
        setup_s=statistics.median(time.setup_s for time, _, _ in times),
        action_s=statistics.median((time.physics_s + time.check_s) / steps for time, steps, _ in times),
        observation_s=statistics.median(time.render_s / calls for time, _, calls in times),
        cameras=cameras,
        expert_s=statistics.median(experts) if experts else None,
        expert_steps=None,
        n=len(records),
    )


def policy_rate(records: Iterable[TrialRecord]) -> PolicyRate | None:
    """A policy's rate by its own scored trials, or None if there are none."""
    scored = [record for record in records if record.outcome.is_scored and record.policy_calls]
    if not scored:
        return None
    steps: dict[Key, list[int]] = defaultdict(list)
    for record in scored:
        steps[record.spec.task, record.spec.config].append(record.steps)
    return PolicyRate(
        decision_s=statistics.median(record.timings.inference_s / record.policy_calls for record in scored),
        steps={key: statistics.fmean(numbers) for key, numbers in sorted(steps.items())},
        horizon_share=statistics.fmean(record.steps / record.spec.horizon_steps for record in scored),
        n=len(scored),
    )
