"""Which of two policies is better, from two runs on the same scenes that stop when that is decided.

The pairs are looked at in an order fixed by the plans, whatever the order in which their trials end, and the test
(``evalkit.aggregate.anytime``) may be looked at after every pair. What comes out is a statement about the two. Neither
run has a score: how many trials it has depends on their outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evalkit.aggregate.anytime import Decision, decide_with_gaps
from evalkit.aggregate.scenes import scenes_in_turn
from evalkit.core.errors import UserError
from evalkit.core.record import TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.protocol.protocols import load_protocol
from evalkit.store.info import RunInfo
from evalkit.store.run import Run

State = Literal["decided", "budget used up", "going on"]


@dataclass(frozen=True)
class ScenePair:
    """One scene that both policies meet."""

    first: TrialSpec
    second: TrialSpec

    @property
    def title(self) -> str:
        """Task, configuration, seed."""
        return f"{self.first.task} {self.first.config} seed {self.first.seed}"


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Pairs looked at, by outcome."""

    both: int
    first_only: int
    second_only: int
    neither: int
    missing: int
    """A trial of the pair ended in a simulator or harness error."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How far two runs are in deciding between their policies."""

    state: State
    decision: Decision
    planned: int
    """Pairs there are at most."""
    counts: Counts
    """Of the pairs that the decision looked at."""
    by_group: Mapping[str, Counts]
    """The same for each ``"task/configuration"``."""
    missing: tuple[str, ...]
    """Pairs that are missing a trial, by title."""


def scene_pairs(first: Sequence[TrialSpec], second: Sequence[TrialSpec]) -> tuple[ScenePair, ...]:
    """Pairs in the order in which they are looked at: one scene of each task and configuration in turn.

    So the pairs looked at hold each task equally often, give or take one, wherever they end.

    Args:
        first: plan of one run.
        second: plan of the other.

    Raises:
        UserError: they don't meet the same scenes.
    """
    return tuple(ScenePair(*pair) for pair in scenes_in_turn([first, second]))


def outcomes_of(protocol: str, records: Iterable[TrialRecord]) -> dict[str, bool | None]:
    """Key -> success, of trials that ended; None for one that counts as missing."""
    counts_as = load_protocol(protocol).outcomes
    meaning = {"success": True, "failure": False, "missing": None, "dropped": None}
    return {record.key: meaning[counts_as[record.outcome]] for record in records}


def choose(order: Sequence[ScenePair], outcomes: Mapping[str, bool | None], *, alpha: float) -> Choice:
    """Look at the pairs up to the first that hasn't ended.

    Args:
        order: pairs as ``scene_pairs`` gives them.
        outcomes: key -> success or None (missing), of both runs' trials that ended.
        alpha: see ``evalkit.aggregate.anytime.decide``.
    """
    ended: list[tuple[bool, bool] | None] = []
    for pair in order:
        if pair.first.key not in outcomes or pair.second.key not in outcomes:
            break
        one, other = outcomes[pair.first.key], outcomes[pair.second.key]
        ended.append(None if one is None or other is None else (one, other))
    decision = decide_with_gaps(ended, alpha=alpha)
    state: State = "going on"
    if decision.verdict != "undecided":
        state = "decided"
    elif len(ended) == len(order):
        state = "budget used up"
    looked = list(zip(order, ended, strict=False))[: decision.pairs]
    groups: dict[str, list[tuple[bool, bool] | None]] = {}
    for pair, outcome in looked:
        groups.setdefault(f"{pair.first.task}/{pair.first.config}", []).append(outcome)
    return Choice(
        state=state,
        decision=decision,
        planned=len(order),
        counts=_counts([outcome for _, outcome in looked]),
        by_group={name: _counts(found) for name, found in groups.items()},
        missing=tuple(pair.title for pair, outcome in looked if outcome is None),
    )


def choice_of(first: Run, second: Run) -> Choice:
    """How far two runs of one decision are.

    Raises:
        UserError: they aren't the two sides of one decision, or don't meet the same scenes.
    """
    one, other = first.info.stopping, second.info.stopping
    if one is None or other is None or one.decision != other.decision or (one.side, other.side) != ("first", "second"):
        raise UserError(f"{first.folder} and {second.folder} aren't the first and second side of one decision")
    outcomes: dict[str, bool | None] = {}
    for run in (first, second):
        outcomes |= outcomes_of(run.info.protocol, run.records().values())
    return choose(scene_pairs(first.plan, second.plan), outcomes, alpha=one.alpha)


def stopping_line(info: RunInfo, *, all_done: bool) -> str:
    """Why a run's trials are no score, or an empty text for runs that end with their plan.

    Args:
        info: the run's manifest.
        all_done: whether every planned trial ended.
    """
    if info.stopping is None:
        return ""
    option = f"--{info.stopping.rule}"
    what = f"run under {option} to the end of its budget" if all_done else f"stopped early by {option}"
    return f"{what}: its trials choose between two policies and are no score"


def _counts(outcomes: Sequence[tuple[bool, bool] | None]) -> Counts:
    found = Counter(outcomes)
    return Counts(
        both=found[True, True],
        first_only=found[True, False],
        second_only=found[False, True],
        neither=found[False, False],
        missing=found[None],
    )
