"""Several checkpoints on the same scenes: which is best, how far the others are behind, and what choosing cost.

The best is picked by the very trials that score it, so its score is on average too high, and a plain test of "the best
against another" finds differences too easily. Therefore: differences are paired and tested over *all* pairs of
checkpoints with Holm's correction, which stays valid whichever is picked; their intervals hold jointly for all pairs
(Bonferroni); and ``chosen_elsewhere`` scores the choice on scenes it wasn't made on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from evalkit.aggregate.compare import ALPHA, matches_under
from evalkit.aggregate.difference import Gap, Match, suite_gap
from evalkit.aggregate.pairs import holm
from evalkit.aggregate.proportions import Estimate
from evalkit.aggregate.scores import Summary
from evalkit.aggregate.sides import Side, run_side
from evalkit.aggregate.summary import summarise
from evalkit.core.errors import UserError
from evalkit.store.info import PolicyInfo
from evalkit.store.run import Run

Task = tuple[str, str]
"""Configuration, task."""
FOLDS = 5
AVERAGE = "mean"


@dataclass(frozen=True, kw_only=True)
class Against:
    """A checkpoint against the best one; negative: behind."""

    gap: Gap
    """Paired, 95 % by itself."""
    joint_low: float
    joint_high: float
    """Bounds that hold at 95 % for all pairs of checkpoints together."""
    p: float
    """Of "both succeed equally often", adjusted by Holm over all pairs of checkpoints."""

    @property
    def told_apart(self) -> bool:
        """Whether the two were found to differ."""
        return self.p <= ALPHA


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One checkpoint of a sweep."""

    name: str
    run: Run
    summary: Summary
    value: Estimate | None
    """What checkpoints are ordered by; None while trials are missing."""
    against: Against | None
    """None for the best itself, and while trials are missing."""
    is_best: bool

    @property
    def step(self) -> int | None:
        """Training step, if known."""
        return self.summary.policy.step


@dataclass(frozen=True, kw_only=True)
class SweepScores:
    """What a sweep came to."""

    entries: tuple[Entry, ...]
    """In the order of the sweep."""
    by: str
    """What the best is best in: ``"mean"`` of both configurations, or the configuration's name."""
    pairs: int
    """Pairs of checkpoints that were compared."""
    chosen_elsewhere: float | None
    """Mean of "the best on some scenes" on the other scenes, over ``FOLDS`` divisions; None below two checkpoints or
    two scenes per task."""

    @property
    def best(self) -> Entry | None:
        """The best of the complete ones; of equals, the first."""
        return next((entry for entry in self.entries if entry.is_best), None)

    @property
    def incomplete(self) -> tuple[Entry, ...]:
        """Checkpoints with missing trials."""
        return tuple(entry for entry in self.entries if entry.value is None)


def score_sweep(runs: Sequence[Run]) -> SweepScores:
    """Compare the runs of a sweep, finished or not.

    Raises:
        UserError: there is none, or they differ in more than the policy.
    """
    if not runs:
        raise UserError("a sweep without runs has no scores")
    names = unique_names([run.info.policy for run in runs])
    summaries = [summarise(run) for run in runs]
    configs = [score.config for score in summaries[0].configs]
    by = AVERAGE if summaries[0].average else configs[0]
    values = [_value(summary) for summary in summaries]
    sides = {name: run_side(run, name) for name, run, value in zip(names, runs, values, strict=True) if value}
    gaps = {
        frozenset((one, other)): gap
        for one, other in combinations(sides, 2)
        if (gap := suite_gap(_matches(sides[one], sides[other], configs))) is not None
    }
    adjusted = dict(zip(gaps, holm([gap.test.p for gap in gaps.values()]), strict=True))
    scored = [(name, value.value) for name, value in zip(names, values, strict=True) if value]
    best = max(scored, key=lambda found: found[1])[0] if scored else None

    def against(name: str) -> Against | None:
        if best is None or frozenset((name, best)) not in gaps:
            return None
        matches = _matches(sides[name], sides[best], configs)
        gap, joint = suite_gap(matches), suite_gap(matches, 1 - ALPHA / len(gaps))
        assert gap is not None
        assert joint is not None
        return Against(gap=gap, joint_low=joint.low, joint_high=joint.high, p=adjusted[frozenset((name, best))])

    return SweepScores(
        entries=tuple(
            Entry(name=name, run=run, summary=summary, value=value, against=against(name), is_best=name == best)
            for name, run, summary, value in zip(names, runs, summaries, values, strict=True)
        ),
        by=by,
        pairs=len(gaps),
        chosen_elsewhere=chosen_elsewhere(list(sides.values())),
    )


def unique_names(policies: Sequence[PolicyInfo]) -> list[str]:
    """The shortest names that tell policies apart: ``step_30000``, else with the folder above, else with a digest."""

    def named(policy: PolicyInfo, parts: int) -> str:
        return "/".join(Path(policy.checkpoint).parts[-parts:]) if policy.checkpoint else policy.adapter

    for parts in (1, 2, 3):
        names = [named(policy, parts) for policy in policies]
        if len(set(names)) == len(names):
            return names
    return [f"{named(policy, 2)} {policy.digest[:6]}" for policy in policies]


def chosen_elsewhere(sides: Sequence[Side], folds: int = FOLDS) -> float | None:
    """How well the choice does on scenes it wasn't made on.

    The scenes of every task are divided into ``folds`` parts. For each part, the side that is best on all the others
    is taken and scored on this part. The mean of that has no winner's bonus; it is of choices made on a little
    fewer scenes.

    Args:
        sides: complete runs on the same scenes.
        folds: parts; fewer if a task has fewer scenes.
    """
    if len(sides) < 2:
        return None
    tables = [_outcomes(side) for side in sides]
    shared = {task: sorted(set.intersection(*(set(table[task]) for table in tables))) for task in tables[0]}
    folds = min(folds, min(map(len, shared.values()), default=0))
    if folds < 2:
        return None
    won = dict.fromkeys(shared, 0)
    for fold in range(folds):
        rest = {task: [scene for i, scene in enumerate(scenes) if i % folds != fold] for task, scenes in shared.items()}
        chosen = max(tables, key=lambda table: _mean(table, rest))
        for task, scenes in shared.items():
            won[task] += sum(chosen[task][scene] for scene in scenes[fold::folds])
    return sum(won[task] / len(scenes) for task, scenes in shared.items()) / len(shared)


def _value(summary: Summary) -> Estimate | None:
    return summary.average.mean if summary.average else summary.configs[0].mean


def _matches(first: Side, second: Side, configs: Sequence[str]) -> list[Match]:
    matched = [matches_under(first, second, config)[0] for config in configs]
    return [match for found in matched for match in found.values()]


def _outcomes(side: Side) -> dict[Task, dict[Any, bool]]:
    return {
        (config, task): dict(scenes)
        for config, found in side.configs.items()
        for task, scenes in (found.scenes or {}).items()
    }


def _mean(table: Mapping[Task, Mapping[Any, bool]], scenes: Mapping[Task, Sequence[Any]]) -> float:
    return sum(sum(table[task][scene] for scene in of_task) / len(of_task) for task, of_task in scenes.items())
