"""The rules of a protocol that evalkit carries out: which scenes, which sentence, how long, what counts as success.

A sheet's fields say what its source did. Where a field's value can't be carried out, the sheet's ``scoring.instead``
says what evalkit does in its place; that is listed beside every score. Without it, a run is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, cast, get_args

from evalkit.core.errors import UserError
from evalkit.core.tasks import STEP_LIMITS, TASKS
from evalkit.core.trial import Split, SuccessRule
from evalkit.protocol.comparability import Fact, shown
from evalkit.protocol.sheets import ProtocolSheet, check_keys

AcceptRule = Literal["expert_in_order", "unfiltered"]
Source = Literal["templates", "task_name", "task_name_mostly"]
ErrorRule = Literal["policy_failure_sim_missing", "failure", "stops_task", "stops_run", "dropped"]

RULES = (
    "first_seed",
    "accepted_seeds",
    "instruction_source",
    "instruction_split",
    "step_limits",
    "success",
    "errors",
    "denominator",
    "score",
)
"""Fields that evalkit carries out. The others (training data, assets, renderer, ...) are what a run happens to have."""
_DENOMINATORS = ("planned_trials", "trials_without_error")
_BASED = re.compile(r"(\d+) \* \(1 \+ s\)")
_NUMBER = re.compile(r"\d+")
_CAPPED = re.compile(r"official_up_to_(\d+)")
_CHUNKS = re.compile(r"(\d+) chunks")


@dataclass(frozen=True, kw_only=True)
class SeedRule:
    """How the list of one task and configuration is made. The default is RoboTwin's way."""

    first: int | None = None
    """First candidate; None: ``100000 * (1 + seed base)``."""
    checked: bool = True
    """Whether a candidate counts only if its scene is stable and its expert succeeds."""
    sentences: bool = True
    """Whether the policy gets one of RoboTwin's sentences; else the task's name with spaces."""
    split: Split | None = None
    """Sentences to draw from; None: as the configuration says."""
    history: bool = False
    """Whether one process tries all candidates in order, as RoboTwin does, and what it leaves behind stays."""

    @property
    def folder(self) -> str:
        """Names the lists of this rule; empty for RoboTwin's way, whose lists every checkpoint shares."""
        if self == SeedRule():
            return ""
        words = [
            f"from-{self.first}" if self.first is not None else "",
            "" if self.checked else "unfiltered",
            (self.split or "own-split") if self.sentences else "task-name",
            "in-history" if self.history else "",
        ]
        return "_".join(word for word in words if word)


ROBOTWINS = SeedRule()
"""RoboTwin's way."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What evalkit does under one protocol."""

    protocol: str
    first_seed: int
    seed_stride: int
    """Seed base b starts at ``first_seed + b * seed_stride``; 0: there is one list."""
    accepted: AcceptRule
    source: Source
    sentences_for: tuple[str, ...]
    """Tasks with sentences of their own, where the others get the task's name."""
    splits: Mapping[str, Split]
    """Configuration -> sentences; ``"none"`` where the policy gets the task's name."""
    own_splits: Mapping[str, str]
    """Configuration -> the split that its own file names."""
    step_limits: str
    success: SuccessRule
    errors: ErrorRule
    denominator: str
    without_tasks: tuple[str, ...]
    """Tasks that the protocol leaves out."""
    instead: Mapping[str, str]
    """Field -> what evalkit does where the sheet's value can't be carried out."""

    def first_candidate(self, seed_base: int) -> int:
        """First candidate seed.

        Raises:
            UserError: a negative base, or one where the protocol has a single list.
        """
        if seed_base < 0:
            low = f": seeds below {self.first_seed} are training seeds" if self.first_seed >= 100_000 else ""
            raise UserError(f"--seed-base is {seed_base}; it must be 0 or more{low}")
        if seed_base and not self.seed_stride:
            raise UserError(
                f"--seed-base is {seed_base}; protocol {self.protocol} always starts at seed {self.first_seed}: "
                "leave --seed-base out"
            )
        return self.first_seed + seed_base * self.seed_stride

    def seed_rule(self, task: str, config: str, seed_base: int, *, history: bool = False) -> SeedRule:
        """How the list of a task and a configuration is made."""
        first = self.first_candidate(seed_base)
        sentences = self.source == "templates" or task in self.sentences_for
        return SeedRule(
            first=None if (self.first_seed, self.seed_stride) == (100_000, 100_000) else first,
            checked=self.accepted == "expert_in_order",
            sentences=sentences,
            split=None if self.splits[config] == self.own_splits[config] else self.splits[config],
            history=history,
        )

    def tasks_of(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Tasks without those that the protocol leaves out."""
        return tuple(task for task in tasks if task not in self.without_tasks)

    def horizon_steps(self, task: str, execute_steps: int) -> int:
        """Step limit of a task, in actions.

        Args:
            task: RoboTwin's task.
            execute_steps: actions that the policy executes of each chunk; matters where the limit is in chunks.
        """
        if match := _CHUNKS.fullmatch(self.step_limits):
            return int(match[1]) * execute_steps
        if match := _CAPPED.fullmatch(self.step_limits):
            return min(STEP_LIMITS[task], int(match[1]))
        return STEP_LIMITS[task] if self.step_limits == "official" else int(self.step_limits)

    def facts(self) -> dict[str, str]:
        """Field -> what was carried out, for a run's manifest."""
        first = f"{self.first_seed} * (1 + s)" if self.seed_stride else str(self.first_seed)
        splits = [f"{config} {split}" for config, split in self.splits.items()]
        return {
            "first_seed": first,
            "accepted_seeds": self.accepted,
            "instruction_source": self.source,
            "instruction_split": ", ".join(splits),
            "step_limits": self.step_limits,
            "success": self.success,
            "errors": self.errors,
            "denominator": self.denominator,
            "score": "macro_mean",
        }


def rules_of(sheet: ProtocolSheet, path: Path, own_splits: Mapping[str, str]) -> Rules:
    """The rules of a sheet.

    Args:
        sheet: the protocol.
        path: its file, for messages.
        own_splits: configuration -> the split that the task configuration names.

    Raises:
        UserError: a field has a value that evalkit can't carry out, and ``scoring.instead`` has no other.
    """
    scoring = sheet.scoring or {}
    instead = scoring.get("instead") or {}
    check_keys(path, instead, (), prefix="scoring.instead.", optional=RULES)
    facts: dict[str, str] = {name: shown(sheet.facts[name]) for name in RULES if name in sheet.facts}
    facts |= {name: str(value) for name, value in instead.items()}
    first, stride = _first_seed(path, facts["first_seed"])
    source = _choice(path, "instruction_source", facts, get_args(Source))
    splits = {config: _split(path, config, fact, source) for config, fact in sheet.instruction_split.items()}
    limits = facts["step_limits"]
    if limits != "official" and not any(p.fullmatch(limits) for p in (_NUMBER, _CAPPED, _CHUNKS)):
        _refuse(path, "step_limits", limits, "official, official_up_to_<number>, a number, or '<number> chunks'")
    errors = _choice(path, "errors", facts, get_args(ErrorRule))
    denominator = _choice(path, "denominator", facts, _DENOMINATORS)
    if (errors == "dropped") != (denominator == "trials_without_error"):
        _refuse(path, "denominator", denominator, "trials_without_error where errors are dropped, and only there")
    _choice(path, "score", facts, ("macro_mean",))
    return Rules(
        protocol=sheet.name,
        first_seed=first,
        seed_stride=stride,
        accepted=cast(AcceptRule, _choice(path, "accepted_seeds", facts, get_args(AcceptRule))),
        source=cast(Source, source),
        sentences_for=_tasks(path, scoring, "sentences_for"),
        splits=splits,
        own_splits=dict(own_splits),
        step_limits=limits,
        success=cast(SuccessRule, _choice(path, "success", facts, get_args(SuccessRule))),
        errors=cast(ErrorRule, errors),
        denominator=denominator,
        without_tasks=_tasks(path, scoring, "without_tasks"),
        instead={name: str(value) for name, value in instead.items()},
    )


def _first_seed(path: Path, text: str) -> tuple[int, int]:
    if match := _BASED.fullmatch(text):
        return int(match[1]), int(match[1])
    if not _NUMBER.fullmatch(text):
        _refuse(path, "first_seed", text, "a number, or like 100000 * (1 + s)")
    return int(text), 0


def _split(path: Path, config: str, fact: Fact, source: str) -> Split:
    split = shown(fact)
    if source == "task_name":
        return "none"
    if split not in ("seen", "unseen"):
        _refuse(path, f"instruction_split of {config}", split, "seen or unseen")
    return cast(Split, split)


def _choice(path: Path, field: str, facts: Mapping[str, str], known: tuple[str, ...]) -> str:
    if facts[field] not in known:
        _refuse(path, field, facts[field], " or ".join(known))
    return facts[field]


def _refuse(path: Path, field: str, value: str, known: str) -> NoReturn:
    raise UserError(
        f"{path}: {field} is {value!r}, which evalkit can't carry out; it knows {known}: choose another protocol, or "
        f"say in scoring.instead.{field.split()[0]} what to do in its place"
    )


def _tasks(path: Path, scoring: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = scoring.get(key) or []
    if not isinstance(names, list) or any(name not in TASKS for name in names):
        raise UserError(f"{path}: scoring.{key} is {names!r}; it must be a list of RoboTwin's tasks")
    return tuple(names)
