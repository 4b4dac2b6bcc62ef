"""Task configurations: RoboTwin's YAML files, checked key by key and named by a digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.hashing import digest
from evalkit.core.locations import bundled
from evalkit.core.trial import Split
from evalkit.protocol.schema import GROUPS, SCHEMA, normal, problem_of


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """One task configuration."""

    name: str
    """File name without its suffix, e.g. ``"demo_clean"``."""
    settings: Mapping[str, Any]
    """RoboTwin's schema, nested as in the file. Not to be changed."""
    digest: str
    """SHA-256 over the settings that can change a trial: all but those ``evalkit.protocol.schema`` marks."""
    instruction_split: Split
    """The file's ``eval_instruction``."""


def known_configs() -> tuple[str, ...]:
    """Names of the configurations that travel with evalkit."""
    return tuple(sorted(path.stem for path in bundled("task_configs").glob("*.yml")))


def load_config(name_or_path: str) -> TaskConfig:
    """A configuration by name, or from a YAML file in RoboTwin's schema.

    Args:
        name_or_path: a known name, or a path (it holds a ``/`` or ends in ``.yml`` or ``.yaml``).

    Raises:
        UnknownNameError: no such name, or a key that RoboTwin's schema doesn't have.
        UserError: a missing file or key, a value of the wrong type, or a file that takes a known name for other
            settings.
    """
    is_path = "/" in name_or_path or name_or_path.endswith((".yml", ".yaml"))
    if not is_path:
        if name_or_path not in known_configs():
            raise UnknownNameError("task configuration", name_or_path, known_configs())
        return _load(bundled("task_configs") / f"{name_or_path}.yml")
    path = Path(name_or_path).expanduser()
    config = _load(path)
    if config.name in known_configs():
        _refuse_impostor(config, _load(bundled("task_configs") / f"{config.name}.yml"), path)
    return config


def flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as dotted key -> value, one level of groups deep."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if key in GROUPS and isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": inner_value for inner, inner_value in value.items()})
        else:
            flat[key] = value
    return flat


def _load(path: Path) -> TaskConfig:
    flat = flatten(_read_mapping(path))
    for key in flat:
        if key not in SCHEMA and key not in GROUPS:
            raise UnknownNameError(f"key in {path}:", key, SCHEMA)
    for key in GROUPS:
        if key in flat:
            raise UserError(f"{path}: {key} is {flat[key]!r}; it must be a mapping")
    missing = [key for key in SCHEMA if key not in flat]
    if missing == ["eval_instruction"]:
        raise UserError(
            f"{path}: key eval_instruction is missing, as in RoboTwin's older files: add 'eval_instruction: seen' or "
            "'eval_instruction: unseen' to say which instructions the policy gets"
        )
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise UserError(f"{path}: key {missing[0]}{more} is missing: RoboTwin's schema needs it")
    for key, value in flat.items():
        if wanted := problem_of(key, value):
            raise UserError(f"{path}: {key} is {value!r}; it must be {wanted}")
    flat = {key: normal(key, flat[key]) for key in SCHEMA}
    return TaskConfig(
        name=path.stem,
        settings=_nest(flat),
        digest=digest({key: value for key, value in flat.items() if SCHEMA[key].in_digest}),
        instruction_split=flat["eval_instruction"],
    )


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        values = yaml.load(path.read_text(), Loader=_StrictLoader)
    except FileNotFoundError as error:
        raise UserError(f"no task configuration at {path}; known names: {', '.join(known_configs())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"task configuration {path} can't be read: {error}") from error
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())
        raise UserError(f"task configuration {path} isn't valid YAML: {where}") from error
    if not isinstance(values, dict):
        raise UserError(f"task configuration {path} holds {type(values).__name__}, not a mapping of settings")
    return {str(key): value for key, value in values.items()}


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        group, dot, inner = key.partition(".")
        if dot:
            nested.setdefault(group, {})[inner] = value
        else:
            nested[key] = value
    return nested


def _refuse_impostor(config: TaskConfig, official: TaskConfig, path: Path) -> None:
    # A score is labelled by the configuration's name, so a known name must mean the known settings.
    if config.digest == official.digest:
        return
    ours, theirs = flatten(config.settings), flatten(official.settings)
    differing = [key for key in SCHEMA if SCHEMA[key].in_digest and ours[key] != theirs[key]]
    shown = "; ".join(f"{key}: {ours[key]!r} here, {theirs[key]!r} in {official.name}" for key in differing[:3])
    raise UserError(f"{path} is named {config.name} but has other settings ({shown}): rename the file")


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, refusing a key given twice instead of taking the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key_node, deep=True) for key_node, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)
