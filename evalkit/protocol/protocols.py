"""Protocols that evalkit scores under: how many trials, which scenes, what counts as what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.outcome import Outcome
from evalkit.protocol.comparability import PER_RUN, Fact, shown
from evalkit.protocol.config import load_config
from evalkit.protocol.sheets import ProtocolSheet, check_keys, known_sheets, load_sheet, read_sheet
from evalkit.protocol.training_set import training_parts
from evalkit.protocol.variant import Rules, rules_of

CountsAs = Literal["success", "failure", "missing", "dropped"]
LEADERBOARD = "leaderboard"
_KEYS = ("outcomes",)
_OPTIONAL = ("labels", "instead", "sentences_for", "without_tasks")
_OF_ERRORS: Mapping[str, Mapping[str, CountsAs]] = {
    "policy_failure_sim_missing": {"policy_error": "failure", "sim_error": "missing"},
    "failure": {"policy_error": "failure", "sim_error": "failure"},
    "stops_task": {"policy_error": "missing", "sim_error": "missing"},
    "stops_run": {"policy_error": "missing", "sim_error": "missing"},
    "dropped": {"policy_error": "dropped", "sim_error": "dropped"},
}
"""Word of ``errors`` -> what the outcomes must count as, so that a sheet can't say two things."""


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
    """Label of the score -> configuration it is measured under. Other protocols than the leaderboard's have no labels
    of their own: there the configuration's name."""
    tasks: int | None
    """None: left to each run."""
    trials_per_task: int | None
    """None: left to each run."""
    rules: Rules
    outcomes: Mapping[Outcome, CountsAs]
    training: TrainingRule | None
    """None: an entry may have learned from anything."""

    @property
    def is_leaderboard(self) -> bool:
        """Whether scores under it may stand on RoboTwin's board."""
        return self.name == LEADERBOARD

    @property
    def first_seed(self) -> int:
        """First candidate of seed base 0."""
        return self.rules.first_seed

    @property
    def seed_stride(self) -> int:
        """Seed base b starts at ``first_seed + b * seed_stride``."""
        return self.rules.seed_stride


def known_protocols() -> tuple[str, ...]:
    """Names of the protocols that evalkit scores under."""
    return tuple(name for name in known_sheets() if load_sheet(name).scoring is not None)


@cache
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
    official = sheet.name == LEADERBOARD
    check_keys(path, scoring, (*_KEYS, "labels") if official else _KEYS, prefix="scoring.", optional=_OPTIONAL)
    check_keys(path, scoring["outcomes"], tuple(map(str, Outcome)), prefix="scoring.outcomes.")
    labels = scoring.get("labels", {config: config for config in sheet.configs})
    if not isinstance(labels, Mapping) or tuple(labels.values()) != sheet.configs:
        raise UserError(f"{path}: scoring.labels is {labels!r}; it must name {' and '.join(sheet.configs)} in order")
    rules = rules_of(sheet, path, {config: load_config(config).instruction_split for config in sheet.configs})
    if official and rules.splits != rules.own_splits:
        raise UserError(f"{path}: instruction_split is {dict(rules.splits)}; the configurations say otherwise")
    facts = sheet.facts
    return Protocol(
        name=sheet.name,
        version=sheet.version,
        source=sheet.source,
        read_on=sheet.read_on,
        embodiment=shown(facts["embodiment"]),
        configs=dict(labels),
        tasks=_count(facts["tasks"]),
        trials_per_task=_count(facts["trials_per_task"]),
        rules=rules,
        outcomes=_outcomes(path, scoring["outcomes"], rules),
        training=_training_rule(path, shown(facts["training"])) if official else None,
    )


def _outcomes(path: Path, outcomes: Mapping[str, Any], rules: Rules) -> dict[Outcome, CountsAs]:
    wanted = {"success": "success", "failure": "failure", "harness_error": "missing", **_OF_ERRORS[rules.errors]}
    for outcome, counts_as in outcomes.items():
        if counts_as not in get_args(CountsAs):
            raise UnknownNameError(f"meaning of outcome {outcome} in {path}:", str(counts_as), get_args(CountsAs))
        if counts_as != wanted[outcome]:
            raise UserError(
                f"{path}: scoring.outcomes.{outcome} is {counts_as!r}; with errors: {rules.errors} it must be "
                f"{wanted[outcome]!r}"
            )
    return {Outcome(name): counts_as for name, counts_as in outcomes.items()}


def _training_rule(path: Path, name: str) -> TrainingRule:
    parts = training_parts(name)
    if parts is None or len(parts) != 1:
        raise UserError(f"{path}: training is {name!r}; evalkit scores under one configuration, like demo_clean_50x50")
    [(config, (episodes, tasks))] = parts.items()
    return TrainingRule(config=config, episodes_per_task=episodes, tasks=tasks)


def _count(fact: Fact) -> int | None:
    return None if fact == PER_RUN else int(shown(fact))
