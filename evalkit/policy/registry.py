"""Adapters by name: one file or folder in ``policies/`` each, found by looking, registered nowhere.

Looked for in the policies that travel with evalkit and in ``policies/`` of the working folder. An adapter is loaded by
path as the module ``evalkit_policies.<name>``, so relative imports inside its folder work and nothing is added to
``sys.path``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.hashing import digest, file_digest
from evalkit.core.locations import bundled
from evalkit.policy.contract import Policy, PolicySpec
from evalkit.policy.ensemble import ensembled, with_ensembling
from evalkit.policy.settings import PolicySettings

PACKAGE = "evalkit_policies"


class Adapter(Protocol):
    """What an adapter module exposes."""

    NEEDS_CHECKPOINT: bool

    def load(self, checkpoint: Path | None, *, device: str) -> Policy:
        """Make the policy.

        Args:
            checkpoint: a step folder, or None for an adapter without weights.
            device: ``"cpu"``, ``"cuda"`` or ``"cuda:<n>"``.
        """
        ...


class Form(Protocol):
    """What an adapter of a form exposes: a policy of this kind is described by a policy file."""

    def load(self, checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> Policy:
        """Make the policy that ``settings`` describe."""
        ...

    def spec(self, settings: PolicySettings) -> PolicySpec:
        """The policy's declaration."""
        ...

    def identity(self, settings: PolicySettings) -> Mapping[str, Any]:
        """Plain values that decide the policy's actions: two policies of one identity are the same policy.

        Addresses and paths aren't part of it; digests of files are.
        """
        ...


def adapter_names() -> tuple[str, ...]:
    """Names of all adapters that can be loaded, sorted."""
    return tuple(sorted(_paths()))


def load_adapter(name: str) -> Adapter:
    """Import an adapter.

    Raises:
        UnknownNameError: no such adapter.
        UserError: two different adapters have the name, or the module can't be imported or lacks a part.
    """
    return _checked(name, _adapter_path(name))


def _checked(name: str, path: Path) -> Adapter:
    module = _import(name, path)
    for part in ("load", "NEEDS_CHECKPOINT"):
        if not hasattr(module, part):
            raise UserError(f"adapter {name} ({path}) has no {part!r}: an adapter defines load and NEEDS_CHECKPOINT")
    return cast(Adapter, module)


def load_adapter_file(file: Path) -> Adapter:
    """Import an adapter by the path of its file, or of its folder's ``__init__.py``.

    Raises:
        UserError: it can't be imported or lacks a part.
    """
    name = file.parent.name if file.name == "__init__.py" else file.stem
    return _checked(name, file)


def load_form(name: str) -> Form:
    """Import an adapter that takes a policy file.

    Raises:
        UnknownNameError: no such adapter.
        UserError: it takes none, or can't be imported.
    """
    module = load_adapter(name)
    if not hasattr(module, "identity"):
        raise UserError(f"policy {name} takes no policy file: name it with --policy {name}")
    return cast(Form, module)


def load_described(settings: PolicySettings, checkpoint: Path | None, *, device: str) -> Policy:
    """The policy that a policy file describes.

    Raises:
        UserError: something is wrong with the file, or with what it names.
    """
    policy = load_form(settings.adapter).load(checkpoint, device=device, settings=settings)
    return with_ensembling(policy, settings.ensemble)


def described_spec(settings: PolicySettings) -> PolicySpec:
    """Its declaration."""
    spec = load_form(settings.adapter).spec(settings)
    return spec if settings.ensemble is None else ensembled(spec)


def described_identity(settings: PolicySettings) -> Mapping[str, Any]:
    """Plain values that decide its actions."""
    identity = load_form(settings.adapter).identity(settings)
    return identity if settings.ensemble is None else {**identity, "ensemble": settings.ensemble}


def load_training(name: str) -> Any:
    """The training recipe of an adapter: ``RECIPE`` of its ``training`` module (see ``evalkit.train.recipe.Recipe``).

    Raises:
        UnknownNameError: no such adapter.
        UserError: the adapter can't be trained.
    """
    path = _adapter_path(name)
    if path.name != "__init__.py" or not path.with_name("training.py").is_file():
        raise UserError(f"policy {name} ({path}) can't be trained: it has no training.py")
    load_adapter(name)
    module = importlib.import_module(f"{PACKAGE}.{name}.training")
    try:
        return module.RECIPE
    except AttributeError:
        raise UserError(f"{path.with_name('training.py')} defines no RECIPE") from None


def adapter_digest(name: str) -> str:
    """SHA-256 over the adapter's Python files: its code is part of what decides a score.

    Raises:
        UnknownNameError: no such adapter.
    """
    path = _adapter_path(name)
    if path.name != "__init__.py":
        return digest({path.name: file_digest(path)})
    files = sorted(path.parent.rglob("*.py"))
    return digest({file.relative_to(path.parent).as_posix(): file_digest(file) for file in files})


def _paths() -> dict[str, list[Path]]:
    """Adapter name → its different files; more than one is an ambiguity."""
    found: dict[str, list[Path]] = {}
    for root in dict.fromkeys(place.resolve() for place in (bundled("policies"), Path("policies"))):
        if not root.is_dir():
            continue
        for entry in sorted(root.iterdir()):
            file = entry / "__init__.py" if entry.is_dir() else entry
            name = entry.stem
            if file.suffix == ".py" and file.is_file() and name.isidentifier() and not name.startswith("_"):
                found.setdefault(name, []).append(file)
    return found


def _adapter_path(name: str) -> Path:
    paths = _paths()
    if name not in paths:
        raise UnknownNameError("policy", name, paths)
    files = paths[name]
    if len(files) > 1:
        raise UserError(f"policy {name} is defined twice: {' and '.join(map(str, files))}; rename one")
    return files[0]


def _import(name: str, path: Path) -> ModuleType:
    if PACKAGE not in sys.modules:
        parent = ModuleType(PACKAGE)
        parent.__path__ = []
        sys.modules[PACKAGE] = parent
    full_name = f"{PACKAGE}.{name}"
    loaded = sys.modules.get(full_name)
    if loaded is not None and loaded.__file__ == str(path):
        return loaded
    for stale in [key for key in sys.modules if key == full_name or key.startswith(f"{full_name}.")]:
        del sys.modules[stale]
    folder = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(full_name, path, submodule_search_locations=folder)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        del sys.modules[full_name]
        raise UserError(f"adapter {name} ({path}) can't be imported: {error}") from error
    except BaseException:
        del sys.modules[full_name]
        raise
    return module
