"""Scores of tasks, configurations and runs: plain values without any logic of display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalkit.aggregate.proportions import Bounds, Estimate
from evalkit.aggregate.spread import Spread
from evalkit.aggregate.tasks_like_these import TaskSample
from evalkit.aggregate.timing import Timing
from evalkit.core.trial import Split
from evalkit.protocol.labels import Label
from evalkit.provenance.card import TrainingCard
from evalkit.store.info import PolicyInfo

Status = Literal["complete", "partial", "incomplete", "stopped"]
"""``complete``: the protocol's tasks and trials, all scored. ``partial``: fewer tasks or trials than the protocol's,
all scored. ``incomplete``: a planned trial is missing. ``stopped``: how many trials there are depends on their
outcomes. Only the first has a score, and the last has no rates either."""


@dataclass(frozen=True, kw_only=True)
class MissingTrial:
    """A planned trial that isn't scored."""

    seed: int
    repeat: int
    why: str
    """``"not run"``, ``"sim_error: <kind>"`` or ``"harness_error: <kind>"``."""


@dataclass(frozen=True, kw_only=True)
class TaskScore:
    """One task under one configuration."""

    task: str
    config: str
    planned: int
    done: int
    """Trials that say something about the policy."""
    successes: int
    failures: int
    """Trials that count as failures, policy errors included."""
    policy_errors: int
    dropped: int
    """Trials in neither number: under some protocols, those that ended in an exception."""
    missing: tuple[MissingTrial, ...]
    step_limit: int
    seeds_digest: str
    """SHA-256 of the planned seeds, in order."""
    estimate: Estimate | None
    """None while trials are missing: their absence may not be by chance. None in a stopped run, too."""
    bounds: Bounds | None
    """Only while trials are missing."""


@dataclass(frozen=True, kw_only=True)
class ConfigScore:
    """All tasks under one configuration."""

    config: str
    label: Label
    split: Split
    digest: str
    tasks: tuple[TaskScore, ...]
    status: Status
    coverage: str
    """E.g. ``"12 of 50 tasks, 60 of 60 trials"``."""
    planned: int
    done: int
    successes: int
    policy_errors: int
    dropped: int
    n_missing: int
    unequal_trials: bool
    """Whether tasks differ in their number of planned trials: the macro and micro averages then differ too."""
    score: Estimate | None
    """Mean over the protocol's tasks; only if ``complete``."""
    partial_mean: Estimate | None
    """Mean over the tasks run; only if ``partial``. Not a score."""
    bounds: Bounds | None
    """What the mean can still become; only if ``incomplete``."""
    pooled: Estimate | None
    """Micro average: all trials of all tasks together. Only if no trial is missing."""
    standard_error: float | None
    """Stratified, of ``score`` or ``partial_mean``: these tasks."""
    tasks_like_these: TaskSample | None
    """The same mean with the interval for tasks like these; only if no trial is missing and there are tasks enough."""
    repeat_spread: Spread | None
    """Spread of the mean over the repeats; only if no trial is missing, and there are repeats that don't all agree."""

    @property
    def mean(self) -> Estimate | None:
        """``score`` or ``partial_mean``, whichever there is."""
        return self.score or self.partial_mean


@dataclass(frozen=True, kw_only=True)
class AverageScore:
    """Mean of the two configurations' means, from counts."""

    name: str
    """E.g. ``"(c2c + c2r) / 2"``."""
    score: Estimate | None
    """Only if both configurations are complete."""
    partial_mean: Estimate | None
    """Only if neither misses a trial, and one is partial. Not a score."""
    bounds: Bounds | None
    """Only if one is incomplete."""
    standard_error: float | None
    """Of ``score`` or ``partial_mean``, with the covariance: these tasks."""
    covariance: float | None
    """Of the two means, from the scenes that both configurations met."""
    shared_scenes: int
    """Task, seed and repeat met under both configurations."""
    tasks_like_these: TaskSample | None
    """The same mean with the interval for tasks like these, both configurations of a task drawn together."""

    @property
    def mean(self) -> Estimate | None:
        """``score`` or ``partial_mean``, whichever there is."""
        return self.score or self.partial_mean


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a run means."""

    run_id: str
    evalkit_version: str
    protocol: str
    policy: PolicyInfo
    card: TrainingCard | None
    backend: Mapping[str, Any]
    """The backend fingerprint's fields."""
    backend_digest: str
    trials_per_task: int
    repeats: int
    configs: tuple[ConfigScore, ...]
    average: AverageScore | None
    """None unless both of the protocol's configurations were run; None in a stopped run."""
    status: Status
    """The worst of the configurations' statuses."""
    under: str
    """What else than the leaderboard's protocol the scores are measured under, e.g. ``"x-vla"``; else empty."""
    rules: Mapping[str, str]
    """Under another protocol: its fields that were carried out -> what was done."""
    not_reproduced: tuple[str, ...]
    """Under another protocol: its fields that aren't as it has them, one line each."""
    not_leaderboard: tuple[str, ...]
    """Why this isn't a leaderboard number, one line each; empty if it may stand on one."""
    stopping: str
    """One line on a run that stops when it has decided between two policies; empty for all others."""
    errors: Mapping[str, int]
    """``"<outcome>: <kind>"`` -> number of trials, for trials that ended in an error."""
    timing: Timing | None
