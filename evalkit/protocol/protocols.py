"""Evaluation protocols as data: how many trials, which scenes, what counts as what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.core.outcome import Outcome
from evalkit.core.tasks import TASKS
from evalkit.protocol.config import known_configs

CountsAs = Literal["success", "failure", "missing"]


@dataclass(frozen=True, kw_only=True)
class TrainingRule:
    """Training data that an entry of the protocol must have."""

    config: str
    episodes_per_task: int
    tasks: int


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One protocol. The comments of its YAML file explain the fields."""

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
    accepted: tuple[str, ...]
    instruction: Literal["config"]
    step_limits: Literal["official"]
    success: Literal["any_instant"]
    outcomes: Mapping[Outcome, CountsAs]
    training: TrainingRule
    score: Literal["macro_mean"]


def known_protocols() -> tuple[str, ...]:
    """Names of the protocols that travel with evalkit."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def load_protocol(name: str) -> Protocol:
    """A protocol by name.

    Raises:
        UnknownNameError: no such protocol.
        UserError: its file doesn't follow the schema.
    """
    if name not in known_protocols():
        raise UnknownNameError("protocol", name, known_protocols())
    return read_protocol(_folder() / f"{name}.yaml")


def read_protocol(path: Path) -> Protocol:
    """A protocol from a file.

    Raises:
        UnknownNameError: a key the schema doesn't have, a configuration or outcome that doesn't exist.
        UserError: a missing key or a value that makes no sense.
    """
    values = yaml.safe_load(path.read_text())
    if not isinstance(values, dict):
        raise UserError(f"{path} holds {type(values).__name__}, not a mapping")
    _check_keys(path, values, [field.name for field in fields(Protocol)], "")
    _check_keys(path, values["training"], [field.name for field in fields(TrainingRule)], "training.")
    _check_keys(path, values["outcomes"], [str(outcome) for outcome in Outcome], "outcomes.")
    for config in values["configs"].values():
        if config not in known_configs():
            raise UnknownNameError(f"task configuration in {path}:", config, known_configs())
    for outcome, counts_as in values["outcomes"].items():
        if counts_as not in get_args(CountsAs):
            raise UnknownNameError(f"meaning of outcome {outcome} in {path}:", str(counts_as), get_args(CountsAs))
    for key, highest in (("tasks", len(TASKS)), ("trials_per_task", 1_000_000)):
        if not isinstance(values[key], int) or not 1 <= values[key] <= highest:
            raise UserError(f"{path}: {key} is {values[key]!r}; it must be a whole number from 1 to {highest}")
    for key, wanted in (("instruction", "config"), ("step_limits", "official"), ("success", "any_instant")):
        if values[key] != wanted:
            raise UserError(f"{path}: {key} is {values[key]!r}; {wanted!r} is the only rule evalkit knows")
    if values["score"] != "macro_mean":
        raise UserError(f"{path}: score is {values['score']!r}; 'macro_mean' is the only rule evalkit knows")
    return Protocol(
        **{
            **values,
            "read_on": str(values["read_on"]),
            "accepted": tuple(values["accepted"]),
            "outcomes": {Outcome(name): counts_as for name, counts_as in values["outcomes"].items()},
            "training": TrainingRule(**values["training"]),
        }
    )


def _check_keys(path: Path, values: Any, known: list[str], prefix: str) -> None:
    if not isinstance(values, dict):
        raise UserError(f"{path}: {prefix.rstrip('.')} must be a mapping")
    for key in values:
        if key not in known:
            raise UnknownNameError(f"key in {path}:", f"{prefix}{key}", [f"{prefix}{name}" for name in known])
    for key in known:
        if key not in values:
            raise UserError(f"{path}: key {prefix}{key} is missing")


def _folder() -> Path:
    return bundled("task_configs") / "protocols"
