"""Checkpoint folders: finding them by name, and making sure of what they hold.

    step_<N>/
        model.safetensors     weights
        policy.json           adapter, step, spec, and what the adapter needs beside the weights
        training_card.json    how the weights came to be (optional: without it a score has no label)

A step folder is written under a temporary name and renamed, so one that exists is whole unless a copy cut it short.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.core.hashing import digest, file_digest
from evalkit.core.locations import bundled
from evalkit.policy.contract import CameraSpec, PolicySpec

MODEL_FILE = "model.safetensors"
POLICY_FILE = "policy.json"
CARD_FILE = "training_card.json"
SCHEMA = 1
_STEP = re.compile(r"step_(\d+)")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was found and verified."""

    path: Path
    step: int
    digest: str
    """SHA-256 over the digests of the files that decide the policy: model.safetensors and policy.json."""
    adapter: str
    spec: dict[str, Any]
    """The policy's declaration as JSON; ``spec_from_json`` reads it."""


def resolve(name: str, *, search: Sequence[Path] | None = None) -> Checkpoint:
    """Find and verify a checkpoint.

    Args:
        name: path of a step folder; path of a run folder (its highest complete step is taken); or a name such as
            ``step_30000``, ``standin_clean50`` or ``standin_clean50/step_30000``, looked up in the search places and
            in the folders directly inside them.
        search: places for names. Default: ``checkpoints``, ``results/train`` and ``runs`` of the working folder, and
            the checkpoints that travel with evalkit.

    Raises:
        UserError: nothing is found, different checkpoints have the name, or the one found is damaged.
    """
    path = Path(name).expanduser()
    if path.exists():
        return read_checkpoint(_step_folder(path))
    places = list(search) if search is not None else default_places()
    found = [_step_folder(folder) for folder in _named(path, places)]
    unique = list(dict.fromkeys(folder.resolve() for folder in found))
    if not unique:
        raise UserError(_missing(name, places))
    checkpoints = [read_checkpoint(folder) for folder in unique]
    if len({(checkpoint.digest, _card_digest(checkpoint.path)) for checkpoint in checkpoints}) > 1:
        listed = "; ".join(str(folder) for folder in unique)
        raise UserError(f"checkpoint name {name!r} is ambiguous, give a path: {listed}")
    return checkpoints[0]


def default_places() -> list[Path]:
    """Where names are looked up, each place once: in a checkout, two of them are the same."""
    here = [Path("checkpoints"), Path("results/train"), Path("runs")]
    return list(dict.fromkeys([*(place.resolve() for place in here), bundled("checkpoints").resolve()]))


def read_checkpoint(folder: Path) -> Checkpoint:
    """Verify a step folder: its files are whole and agree with its name.

    Raises:
        UserError: names the file, what is wrong with it and what was expected.
    """
    match = _STEP.fullmatch(folder.resolve().name)
    if match is None:
        raise UserError(f"{folder} isn't a checkpoint: the folder must be called step_<N>")
    values = read_policy_file(folder)
    step = int(match[1])
    if values["step"] != step:
        raise UserError(f"{folder} says step {values['step']} in {POLICY_FILE}: the folder was renamed or mixed up")
    _check_card_step(folder, step)
    verify_safetensors(folder / MODEL_FILE)
    return Checkpoint(
        path=folder.resolve(),
        step=step,
        digest=digest({name: file_digest(folder / name) for name in (MODEL_FILE, POLICY_FILE)}),
        adapter=values["adapter"],
        spec=values["spec"],
    )


def read_policy_file(folder: Path) -> dict[str, Any]:
    """``policy.json`` of a step folder.

    Raises:
        UserError: missing, not JSON, of another schema, or without adapter, step or spec.
    """
    path = folder / POLICY_FILE
    if not path.is_file():
        raise UserError(f"{folder} isn't a complete checkpoint: it has no {POLICY_FILE}")
    try:
        values: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise UserError(f"{path} isn't JSON (cut short?): {error}") from error
    missing = [key for key in ("schema", "adapter", "step", "spec") if key not in values]
    if missing:
        raise UserError(f"{path} lacks {', '.join(missing)}")
    if values["schema"] != SCHEMA:
        raise UserError(f"{path} has schema {values['schema']}, this evalkit reads schema {SCHEMA}")
    return values


def verify_safetensors(path: Path) -> None:
    """Check that a safetensors file is as long as its header says, without loading it.

    Raises:
        UserError: missing, truncated, overlong, or no safetensors file; gives expected and found size.
    """
    if not path.is_file():
        raise UserError(f"{path.parent} isn't a complete checkpoint: it has no {path.name}")
    found = path.stat().st_size
    with path.open("rb") as stream:
        prefix = stream.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
        if not 2 <= length <= 100_000_000:
            raise UserError(f"{path} ({found} bytes) isn't a safetensors file")
        if found < 8 + length:
            raise UserError(f"{path} is truncated: the header alone takes {8 + length} bytes, found {found}")
        try:
            header = json.loads(stream.read(length))
            ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise UserError(f"{path} has a damaged header: {type(error).__name__}: {error}") from error
    expected = 8 + length + max(ends, default=0)
    if found != expected:
        what = "is truncated" if found < expected else "is longer than its header says"
        raise UserError(f"{path} {what}: expected {expected} bytes, found {found}")


def spec_to_json(spec: PolicySpec) -> dict[str, Any]:
    """A declaration as a plain mapping; ``spec_from_json`` reads it back."""
    values = asdict(spec) | {"cameras": [asdict(camera) for camera in spec.cameras]}
    if not spec.one_at_a_time:
        del values["one_at_a_time"]  # policies declared before the field existed keep their digests
    if spec.history_steps == 1:
        del values["history_steps"]  # likewise
    return values


def spec_from_json(values: dict[str, Any]) -> PolicySpec:
    """Inverse of ``spec_to_json``.

    Raises:
        KeyError, TypeError: a field is missing or unknown.
    """
    cameras = tuple(CameraSpec(**camera) for camera in values["cameras"])
    return PolicySpec(**{**values, "cameras": cameras})


def step_folders(run: Path) -> list[Path]:
    """Complete step folders of a run folder, in numeric order."""
    steps = []
    for child in run.iterdir():
        match = _STEP.fullmatch(child.name)
        if match and (child / MODEL_FILE).is_file() and (child / POLICY_FILE).is_file():
            steps.append((int(match[1]), child))
    return [child for _, child in sorted(steps)]


def _step_folder(path: Path) -> Path:
    """The step folder a path means."""
    if path.is_file():
        raise UserError(f"{path} is a file: give the checkpoint's folder, e.g. {path.parent}")
    if _STEP.fullmatch(path.resolve().name) or (path / POLICY_FILE).exists():
        return path
    steps = step_folders(path)
    if not steps:
        raise UserError(f"{path} holds no complete checkpoint: no step_<N> folder with {MODEL_FILE} and {POLICY_FILE}")
    return steps[-1]


def _named(name: Path, places: Iterable[Path]) -> list[Path]:
    """Folders a name may mean: step folders, and run folders that hold at least one."""
    if name.is_absolute() or ".." in name.parts:
        return []
    found = []
    for place in places:
        parents = [place, *sorted(child for child in place.iterdir() if child.is_dir())] if place.is_dir() else []
        for parent in parents:
            folder = parent / name
            if folder.is_dir() and (_STEP.fullmatch(folder.name) or step_folders(folder)):
                found.append(folder)
    return found


def _missing(name: str, places: Sequence[Path]) -> str:
    known = []
    for place in places:
        runs = [place, *sorted(place.iterdir())] if place.is_dir() else []
        known += [str(step) for run in runs if run.is_dir() for step in step_folders(run)]
    looked = ", ".join(map(str, places))
    there = f"checkpoints there: {'; '.join(known)}" if known else "no checkpoint is there"
    return f"no checkpoint {name!r}: no such path, and no such name in {looked}; {there}"


def _check_card_step(folder: Path, step: int) -> None:
    path = folder / CARD_FILE
    if not path.exists():
        return
    try:
        card_step = json.loads(path.read_text())["step"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    if card_step != step:
        raise UserError(f"{folder} says step {card_step} in {CARD_FILE}: the folder was renamed or mixed up")


def _card_digest(folder: Path) -> str:
    path = folder / CARD_FILE
    return file_digest(path) if path.exists() else ""
