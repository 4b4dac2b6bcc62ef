"""Whether a protocol still says what its source says: stored facts against a newer file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evalkit.core.errors import UserError
from evalkit.core.tasks import STEP_LIMITS
from evalkit.protocol.config import flatten, load_config
from evalkit.protocol.schema import SCHEMA, normal, problem_of
from evalkit.protocol.sheets import ProtocolSheet, read_mapping, sheet_of

Kind = Literal["protocol", "step limits", "task configuration"]
ABSENT = "(absent)"
_SPLIT_KEY = "eval_instruction"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One field that the newer file has otherwise."""

    name: str
    stored: str
    found: str


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What changed."""

    protocol: str
    kind: Kind
    """What the newer file was taken for."""
    compared: int
    """Fields that were compared."""
    changes: tuple[Change, ...]


def drift(sheet: ProtocolSheet, path: Path) -> Drift:
    """Compare a protocol with a newer file.

    Args:
        sheet: the stored protocol.
        path: a protocol file in evalkit's schema; RoboTwin's ``_eval_step_limit.yml``; or one of RoboTwin's task
            configurations, named as there (``demo_clean.yml``).

    Raises:
        UserError: the file is none of these, or has nothing to do with the protocol.
    """
    values = read_mapping(path)
    if "source" in values and "configs" in values:
        return _drift(sheet, "protocol", sheet.rows(), sheet_of(values, path).rows())
    if values and all(isinstance(value, int) and not isinstance(value, bool) for value in values.values()):
        return _step_limits(sheet, values, path)
    if "domain_randomization" in values:
        return _task_config(sheet, values, path)
    raise UserError(
        f"{path} is neither a protocol file (source and configs), RoboTwin's _eval_step_limit.yml (task: limit) "
        "nor a task configuration of RoboTwin's (domain_randomization)"
    )


def _step_limits(sheet: ProtocolSheet, values: Mapping[str, Any], path: Path) -> Drift:
    if sheet.facts["step_limits"] != "official":
        raise UserError(f"{path} holds RoboTwin's step limits, which protocol {sheet.name} doesn't follow")
    return _drift(sheet, "step limits", STEP_LIMITS, values)


def _task_config(sheet: ProtocolSheet, values: Mapping[str, Any], path: Path) -> Drift:
    config = path.stem
    if config not in sheet.configs:
        raise UserError(
            f"{path} isn't named like a task configuration of protocol {sheet.name}: "
            f"{' or '.join(f'{name}.yml' for name in sheet.configs)}"
        )
    stored = flatten(load_config(config).settings)
    found = {
        key: value if key not in SCHEMA or problem_of(key, value) else normal(key, value)
        for key, value in flatten(values).items()
    }
    # Older files don't have the key: their split is the policy's matter, and nothing has drifted.
    stored[_SPLIT_KEY] = sheet.rows()[f"instruction_split of {config}"] if _SPLIT_KEY in found else None
    matters = [key for key in {**stored, **found} if key not in SCHEMA or SCHEMA[key].in_digest]
    return _drift(
        sheet,
        "task configuration",
        {key: stored[key] for key in matters if stored.get(key) is not None},
        {key: found[key] for key in matters if key in found},
    )


def _drift(sheet: ProtocolSheet, kind: Kind, stored: Mapping[str, Any], found: Mapping[str, Any]) -> Drift:
    names = list(dict.fromkeys([*stored, *found]))
    pairs = {name: (str(stored.get(name, ABSENT)), str(found.get(name, ABSENT))) for name in names}
    changes = tuple(
        Change(name=name, stored=before, found=after) for name, (before, after) in pairs.items() if before != after
    )
    return Drift(protocol=sheet.name, kind=kind, compared=len(names), changes=changes)
