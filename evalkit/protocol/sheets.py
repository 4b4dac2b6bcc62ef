"""Protocols as data: what a score means in each of the code bases and papers that publish RoboTwin scores.

``task_configs/protocols/<name>.yaml`` holds one sheet each. A sheet describes; only those with a ``scoring`` section
can be evaluated under (see ``evalkit.protocol.protocols``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.core.tasks import TASKS
from evalkit.protocol.comparability import FIELDS, PER_RUN, UNKNOWN, Fact, Terms, is_known, shown, values_of
from evalkit.protocol.config import known_configs
from evalkit.protocol.training_set import training_of_text
from evalkit.protocol.words import EVERYWHERE, MEANINGS, is_word

_IDENTITY = ("name", "version", "source", "read_on")
_BY_CONFIG = "instruction_split"
_SHARED = tuple(name for name in FIELDS if name not in ("config", _BY_CONFIG))


@dataclass(frozen=True, kw_only=True)
class ProtocolSheet:
    """One protocol as its source states it."""

    name: str
    version: int
    source: str
    """Repository and commit, or paper."""
    read_on: str
    """ISO date on which the source was read."""
    configs: tuple[str, ...]
    """Task configurations that are evaluated."""
    facts: Mapping[str, Fact]
    """Field -> value, for the fields of ``Terms`` that don't depend on the configuration."""
    instruction_split: Mapping[str, Fact]
    """Configuration -> sentences given to the policy."""
    notes: Mapping[str, str]
    """Field -> where the value comes from, or what it leaves out."""
    scoring: Mapping[str, Any] | None
    """What evalkit needs to score under the protocol, or None if it can't."""

    def terms(self, config: str, **changes: Fact) -> Terms:
        """The terms of a score under one configuration.

        Args:
            config: task configuration.
            **changes: fields in which the score's own terms differ from the protocol's, e.g. ``training``.

        Raises:
            UnknownNameError: the protocol doesn't evaluate the configuration.
        """
        if config not in self.configs:
            raise UnknownNameError(f"task configuration of protocol {self.name}", config, self.configs)
        own: dict[str, Fact] = {"config": config, _BY_CONFIG: self.instruction_split[config]}
        return Terms(protocol=self.name, **{**self.facts, **own, **changes})

    def rows(self) -> dict[str, str]:
        """Every field as text; one row for each configuration where they differ."""
        rows: dict[str, str] = {}
        for name in FIELDS:
            if name == "config":
                rows[name] = " and ".join(self.configs)
            elif name == _BY_CONFIG:
                rows |= {f"{name} of {config}": shown(fact) for config, fact in self.instruction_split.items()}
            else:
                rows[name] = shown(self.facts[name])
        return rows


def known_sheets() -> tuple[str, ...]:
    """Names of the protocols that travel with evalkit."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def load_sheet(name: str) -> ProtocolSheet:
    """A protocol's sheet by name.

    Raises:
        UnknownNameError: no such protocol.
        UserError: its file doesn't follow the schema.
    """
    if name not in known_sheets():
        raise UnknownNameError("protocol", name, known_sheets())
    return read_sheet(_folder() / f"{name}.yaml")


def read_sheet(path: Path) -> ProtocolSheet:
    """A protocol's sheet from a file.

    Raises:
        UnknownNameError: a key, configuration or word the schema doesn't have.
        UserError: the file can't be read, lacks a key, or has a value that makes no sense.
    """
    return sheet_of(read_mapping(path), path)


def sheet_of(values: Mapping[str, Any], path: Path) -> ProtocolSheet:
    """A protocol's sheet from a file's contents.

    Raises:
        UnknownNameError, UserError: as ``read_sheet``.
    """
    required = (*_IDENTITY, "configs", *_SHARED, _BY_CONFIG)
    check_keys(path, values, required, optional=("notes", "scoring"))
    configs = _configs(path, values["configs"])
    splits = values[_BY_CONFIG]
    if not isinstance(splits, Mapping):
        splits = dict.fromkeys(configs, splits)
    check_keys(path, splits, configs, prefix=f"{_BY_CONFIG}.")
    notes = values.get("notes") or {}
    check_keys(path, notes, (), prefix="notes.", optional=("configs", *FIELDS))
    if not isinstance(values["version"], int):
        raise UserError(f"{path}: version is {values['version']!r}; it must be a whole number")
    return ProtocolSheet(
        name=str(values["name"]),
        version=values["version"],
        source=" ".join(str(values["source"]).split()),
        read_on=str(values["read_on"]),
        configs=configs,
        facts={name: _fact(path, name, values[name]) for name in _SHARED},
        instruction_split={config: _fact(path, _BY_CONFIG, splits[config]) for config in configs},
        notes={name: " ".join(str(text).split()) for name, text in notes.items()},
        scoring=values.get("scoring"),
    )


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file's keys and values.

    Raises:
        UserError: the file can't be read, isn't YAML, or holds something else.
    """
    try:
        values = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path} isn't valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise UserError(f"{path} holds {type(values).__name__}, not a mapping")
    return {str(key): value for key, value in values.items()}


def check_keys(
    path: Path, values: Any, required: tuple[str, ...], *, prefix: str = "", optional: tuple[str, ...] = ()
) -> None:
    """Pass if a mapping has all required keys and no unknown ones.

    Raises:
        UnknownNameError: an unknown key.
        UserError: no mapping, or a missing key.
    """
    if not isinstance(values, Mapping):
        raise UserError(f"{path}: {prefix.rstrip('.')} must be a mapping")
    known = (*required, *optional)
    for key in values:
        if key not in known:
            raise UnknownNameError(f"key in {path}:", f"{prefix}{key}", [f"{prefix}{name}" for name in known])
    for key in required:
        if key not in values:
            raise UserError(f"{path}: key {prefix}{key} is missing")


def _configs(path: Path, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        raise UserError(f"{path}: configs is {values!r}; it must be a list of task configurations")
    for config in values:
        if config not in known_configs():
            raise UnknownNameError(f"task configuration in {path}:", str(config), known_configs())
    return tuple(values)


def _fact(path: Path, name: str, value: Any) -> Fact:
    if isinstance(value, list) and value:
        return tuple(_word(path, name, item) for item in value)
    return _word(path, name, value)


def _word(path: Path, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise UserError(f"{path}: {name} is {value!r}; it must be a word, a number or a list of them")
    word = str(value)
    if word in EVERYWHERE:
        return word
    if not is_word(name, word):
        raise UnknownNameError(f"{name} in {path}:", word, [*MEANINGS[name], *EVERYWHERE])
    if name == "training" and training_of_text(word) != word:
        raise UserError(f"{path}: training is {word!r}; write it like demo_clean_50x50, or {UNKNOWN} or {PER_RUN}")
    for key, highest in (("tasks", len(TASKS)), ("trials_per_task", 1_000_000)):
        if name == key and not (word.isdecimal() and 1 <= int(word) <= highest):
            raise UserError(f"{path}: {key} is {value!r}; it must be a whole number from 1 to {highest}")
    return word


def unknown_fields(sheet: ProtocolSheet) -> tuple[str, ...]:
    """Fields of a sheet that its source doesn't settle."""
    open_facts = [name for name, fact in sheet.facts.items() if not is_known(fact)]
    open_splits = [_BY_CONFIG for fact in sheet.instruction_split.values() if UNKNOWN in values_of(fact)]
    return tuple(dict.fromkeys([*open_facts, *open_splits]))


def _folder() -> Path:
    return bundled("task_configs") / "protocols"
