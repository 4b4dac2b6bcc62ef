"""Policy files: a policy in the form it has, described in YAML. ``evalkit run --policy my_policy.yaml`` takes one.

adapter: openpi            which form: a file or folder of policies/
name: pi0_step30000        what tables call it (the file's name if left out)
card: training_card.json   how its weights came to be (optional: without it a score has no label)
ensemble: 0.01             ask at every step and average its chunks, with this decay (see evalkit.policy.ensemble)
...                        the form's own settings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evalkit.core.errors import UserError
from evalkit.core.hashing import digest, file_digest

SEMANTICS = 1
"""Version of what settings mean; raised when a change of evalkit can change a policy's actions."""
_COMMON = ("adapter", "name", "card", "ensemble")
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """A policy file."""

    adapter: str
    name: str
    options: Mapping[str, Any]
    """The form's own settings, as written."""
    folder: Path
    """Where relative paths start: the folder of the file."""
    card: Path | None = None
    """Folder of the training card."""
    ensemble: float | None = None
    """Decay of temporal ensembling; None: chunks are executed as they come."""

    def path(self, key: str) -> Path | None:
        """A setting that is a path, absolute; None if it is left out."""
        value = self.options.get(key)
        return None if value is None else (self.folder / Path(str(value)).expanduser()).resolve()

    def check(self, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Refuse unknown and missing settings.

        Raises:
            UserError: names the first.
        """
        known = (*required, *optional)
        unknown = sorted(set(self.options) - set(known))
        missing = [key for key in required if key not in self.options]
        if unknown or missing:
            wrong = f"has no setting {unknown[0]!r}" if unknown else f"needs setting {missing[0]!r}"
            raise UserError(f"policy {self.name} ({self.adapter}) {wrong}; its settings are {', '.join(known)}")


def is_policy_file(name: str) -> bool:
    """Whether what was given for a policy is a policy file rather than an adapter's name."""
    return name.endswith(_SUFFIXES)


def read_settings(path: Path) -> PolicySettings:
    """Read a policy file.

    Raises:
        UserError: no such file, not YAML, or no adapter in it.
    """
    if not path.is_file():
        raise UserError(f"policy file {path} doesn't exist")
    try:
        values = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise UserError(f"{path} isn't YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict) or not isinstance(values.get("adapter"), str):
        raise UserError(f"{path} isn't a policy file: it needs 'adapter:', the form of the policy")
    folder = path.resolve().parent
    card = values.get("card")
    if card is not None and not (folder / str(card)).is_file():
        raise UserError(f"{path}: card {card} doesn't exist")
    return PolicySettings(
        adapter=values["adapter"],
        name=str(values.get("name", path.stem)),
        options={str(key): value for key, value in values.items() if key not in _COMMON},
        folder=folder,
        card=(folder / str(card)).parent if card is not None else None,
        ensemble=_decay(path, values.get("ensemble")),
    )


def _decay(path: Path, value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0):
        return None if value is None else float(value)
    raise UserError(f"{path}: ensemble is {value!r}: give the decay of the weights, 0 or more, e.g. 0.01")


def tree_digest(folder: Path, suffixes: Sequence[str] = (".py", ".yml", ".yaml", ".json")) -> str:
    """SHA-256 over a folder's files of these kinds, names and contents; ``__pycache__`` apart."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts
    )
    return digest({path.relative_to(folder).as_posix(): file_digest(path) for path in files})


def path_digest(path: Path) -> str:
    """SHA-256 of a file, or over all files of a folder.

    Raises:
        UserError: there is no such path.
    """
    if path.is_file():
        return file_digest(path)
    if not path.is_dir():
        raise UserError(f"{path} doesn't exist")
    files = sorted(item for item in path.rglob("*") if item.is_file() and "__pycache__" not in item.parts)
    return digest({item.relative_to(path).as_posix(): file_digest(item) for item in files})


def number(options: Mapping[str, Any], key: str, default: float) -> float:
    """A setting that is a positive number.

    Raises:
        UserError: it isn't one.
    """
    value = options.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise UserError(f"setting {key} is {value!r}: give a positive number")
    return float(value)
