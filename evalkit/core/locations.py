"""Where things lie: files that travel with evalkit, and the folder it installs into."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parents[1]
Bundle = Literal["task_configs", "policies", "checkpoints", "published"]
_IN_CHECKOUT = {"published": "results/published"}


def checkout() -> Path | None:
    """Root of the source checkout evalkit runs from, or None if it is installed as a wheel."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "task_configs").is_dir() else None


def bundled(name: Bundle) -> Path:
    """A folder that travels with evalkit: beside the package in a checkout, inside it in a wheel."""
    root = checkout()
    return root / _IN_CHECKOUT.get(name, name) if root else _PACKAGE / "_bundled" / name


def home() -> Path:
    """Folder for what evalkit installs: RoboTwin's interpreter and generated assets.

    ``$EVALKIT_HOME`` if set, else ``.evalkit`` in a checkout, else ``$XDG_DATA_HOME/evalkit``.
    """
    if value := os.environ.get("EVALKIT_HOME"):
        return Path(value).expanduser().resolve()
    if root := checkout():
        return root / ".evalkit"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "evalkit"
