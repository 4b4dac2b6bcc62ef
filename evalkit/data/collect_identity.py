"""What a collection's seeds are tried with. Demonstrations of different origins never share a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evalkit import __version__
from evalkit.core.errors import UserError
from evalkit.core.trial import BackendFingerprint
from evalkit.data.layout import DatasetFolder

_MAY_DIFFER = "evalkit_version"


def identity(
    *,
    task: str,
    config: str,
    config_digest: str,
    backend: BackendFingerprint,
    cameras: Sequence[str],
    sentences: int,
    save_freq: int,
) -> dict[str, Any]:
    """Content of ``collection.json``.

    Args:
        task: name of the task.
        config: name of the task configuration.
        config_digest: digest of its settings.
        backend: the simulator.
        cameras: cameras recorded.
        sentences: instruction sentences kept of each split, at most.
        save_freq: physics steps between recorded frames.
    """
    return {
        "task": task,
        "config": config,
        "config_digest": config_digest,
        "backend": asdict(backend),
        "cameras": list(cameras),
        "sentences": sentences,
        "save_freq": save_freq,
        _MAY_DIFFER: __version__,
    }


def check_identity(dataset: DatasetFolder, wanted: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder whose episodes have another origin.

    Raises:
        UserError: names the first value that differs, or says that the episodes aren't evalkit's.
    """
    path = dataset.collection_file
    if not path.exists():
        if dataset.episode_numbers():
            raise UserError(f"{dataset.path} holds episodes that evalkit didn't collect: choose another --out")
        return
    try:
        found = _flat(json.loads(path.read_bytes()))
    except (ValueError, AttributeError) as error:
        raise UserError(f"{path} can't be read ({error}): choose another --out") from error
    expected = _flat(wanted)
    for key in [*expected, *found]:
        if key != _MAY_DIFFER and found.get(key) != expected.get(key):
            raise UserError(
                f"{dataset.path} was collected with {key} {found.get(key)!r}, now it is {expected.get(key)!r}: "
                "choose another --out"
            )


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    backend = {f"backend.{key}": value for key, value in values.get("backend", {}).items()}
    return {**{key: value for key, value in values.items() if key != "backend"}, **backend}
