"""Protocols that evalkit scores under: how many trials, which scenes, what counts as what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.outcome import Outcome
from evalkit.protocol.comparability import shown
from evalkit.protocol.config import load_config
from evalkit.protocol.sheets import ProtocolSheet, check_keys, known_sheets, load_sheet, read_sheet
from evalkit.protocol.training_set import training_parts

CountsAs = Literal["success", "failure", "missing"]
_FIRST_SEED = re.compile(r"(\d+) \* \(1 \+ s\)")


@dataclass(frozen=True, kw_only=True)
class TrainingRule:
    """Training data that an entry of the protocol must have."""

    config: str
    episodes_per_task: int
    tasks: int


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One protocol that evalkit scores under, read from its sheet (see ``evalkit.protocol.sheets``)."""

    name: str
    version: int
    source: str
    read_on: str
    """ISO date on which the source was read."""
    embodiment: str
    configs: Mapping[str, str]
    """Label of the score -> configuration it is measured under."""
    tasks: int
    trials_per_task: int
    first_seed: int
    seed_stride: int
    """Seed base b starts at ``first_seed + b * seed_stride``."""
    accepted: tuple[str, ...]
    """What makes a candidate seed count."""
    instruction: Literal["config"]
    """The split that the task configuration's ``eval_instruction`` names."""
    step_limits: Literal["official"]
    success: Literal["any_instant"]
    outcomes: Mapping[Outcome, CountsAs]
    training: TrainingRule
    score: Literal["macro_mean"]


def known_protocols() -> tuple[str, ...]:
    """Names of the protocols that evalkit scores under."""
    return tuple(name for name in known_sheets() if load_sheet(name).scoring is not None)


def load_protocol(name: str) -> Protocol:
    """A protocol by name.

    Raises:
        UnknownNameError: no such protocol.
        UserError: evalkit can't score under it, or its file doesn't follow the schema.
    """
    if name not in known_sheets():
        raise UnknownNameError("protocol", name, known_protocols())
    sheet = load_sheet(name)
    if sheet.scoring is None:
        raise UserError(
            f"protocol {name} describes scores of others; evalkit scores under {' or '.join(known_protocols())}"
        )
    return _protocol(sheet, Path(f"{name}.yaml"))


def read_protocol(path: Path) -> Protocol:
    """A protocol from a file.

    Raises:
        UnknownNameError: a key the schema doesn't have, a configuration or outcome that doesn't exist.
        UserError: a missing key or a value that evalkit can't score under.
    """
    return _protocol(read_sheet(path), path)


def _protocol(sheet: ProtocolSheet, path: Path) -> Protocol:
    scoring = sheet.scoring
    if scoring is None:
        raise UserError(f"{path}: key scoring is missing")
    check_keys(path, scoring, ("labels", "outcomes"), prefix="scoring.")
    check_keys(path, scoring["outcomes"], tuple(map(str, Outcome)), prefix="scoring.outcomes.")
    labels, outcomes = scoring["labels"], scoring["outcomes"]
    if not isinstance(labels, Mapping) or tuple(labels.values()) != sheet.configs:
        raise UserError(f"{path}: scoring.labels is {labels!r}; it must name {' and '.join(sheet.configs)} in order")
    for outcome, counts_as in outcomes.items():
        if counts_as not in get_args(CountsAs):
            raise UnknownNameError(f"meaning of outcome {outcome} in {path}:", str(counts_as), get_args(CountsAs))
    facts = {name: shown(fact) for name, fact in sheet.facts.items()}
    for key, wanted in (
        ("accepted_seeds", "expert_in_order"),
        ("instruction_source", "templates"),
        ("step_limits", "official"),
        ("success", "any_instant"),
        ("denominator", "planned_trials"),
        ("score", "macro_mean"),
    ):
        if facts[key] != wanted:
            raise UserError(f"{path}: {key} is {facts[key]!r}; {wanted!r} is the only rule evalkit scores under")
    for config, split in sheet.instruction_split.items():
        if split != load_config(config).instruction_split:
            raise UserError(f"{path}: instruction_split of {config} is {split!r}; the configuration says otherwise")
    first_seed = int(_parsed(path, "first_seed", facts, _FIRST_SEED, "like 100000 * (1 + s)")[1])
    return Protocol(
        name=sheet.name,
        version=sheet.version,
        source=sheet.source,
        read_on=sheet.read_on,
        embodiment=facts["embodiment"],
        configs=dict(labels),
        tasks=_count(path, "tasks", facts),
        trials_per_task=_count(path, "trials_per_task", facts),
        first_seed=first_seed,
        seed_stride=first_seed,
        accepted=("stable_scene", "expert_success"),
        instruction="config",
        step_limits="official",
        success="any_instant",
        outcomes={Outcome(name): counts_as for name, counts_as in outcomes.items()},
        training=_training_rule(path, facts["training"]),
        score="macro_mean",
    )


def _training_rule(path: Path, name: str) -> TrainingRule:
    parts = training_parts(name)
    if parts is None or len(parts) != 1:
        raise UserError(f"{path}: training is {name!r}; evalkit scores under one configuration, like demo_clean_50x50")
    [(config, (episodes, tasks))] = parts.items()
    return TrainingRule(config=config, episodes_per_task=episodes, tasks=tasks)


def _count(path: Path, key: str, facts: Mapping[str, str]) -> int:
    return int(_parsed(path, key, facts, re.compile(r"(\d+)"), "a whole number")[1])


def _parsed(path: Path, key: str, facts: Mapping[str, Any], pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
    match = pattern.fullmatch(facts[key])
    if match is None:
        raise UserError(f"{path}: {key} is {facts[key]!r}; to score under it, it must be {wanted}")
    return match
