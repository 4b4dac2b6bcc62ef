"""Several checkpoints by one option: a list, a pattern, every so many steps of a training run."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.errors import UserError
from evalkit.policy.checkpoint import (
    MODEL_FILE,
    default_places,
    read_policy_file,
    resolve,
    step_folders,
    verify_safetensors,
)

_STEP = re.compile(r"step_(\d+)")


@dataclass(frozen=True)
class Selection:
    """What an option names."""

    names: tuple[str, ...]
    """Checkpoint folders, or policies, in the order of the table: by training run, then by step."""
    left_out: tuple[str, ...]
    """Folders that a pattern matches but that can't be evaluated, and why, one line each."""


def names_several(text: str | None) -> bool:
    """Whether an option's value is a list or a pattern rather than one name. A path that exists is one name."""
    if text is None or Path(text).expanduser().exists():
        return False
    return "," in text or glob.has_magic(text)


def select_checkpoints(text: str, *, every: int | None = None) -> Selection:
    """The checkpoints that ``--ckpt`` names.

    Args:
        text: names and patterns, comma-separated. A pattern is looked up in the working folder and, if nothing there
            matches, in the places where ``evalkit.policy.checkpoint.resolve`` looks. What is named by itself must be
            whole; what only a pattern matches is left out if it isn't.
        every: take steps that are multiples of this alone; of a run folder, all of those instead of the last one.

    Raises:
        UserError: a name is none, a named checkpoint is damaged, or nothing is left.
    """
    folders: list[Path] = []
    left_out: list[str] = []
    for part in _parts(text):
        if glob.has_magic(part) and not Path(part).expanduser().exists():
            found, wrong = _matching(part, every)
            folders += found
            left_out += wrong
        elif every is not None:
            folders += _steps_of(part)
        else:
            folders.append(resolve(part).path)
    unique = list(dict.fromkeys(folder.resolve() for folder in folders))
    kept = [folder for folder in unique if every is None or _step(folder) % every == 0]
    if not kept:
        why = f"; left out: {'; '.join(left_out)}" if left_out else ""
        if unique:
            steps = ", ".join(str(_step(folder)) for folder in unique)
            raise UserError(f"--every {every} leaves no checkpoint of --ckpt {text}: their steps are {steps}{why}")
        raise UserError(f"--ckpt {text} matches no complete checkpoint{why or ' here or in the usual places'}")
    runs = list(dict.fromkeys(folder.parent for folder in kept))
    kept.sort(key=lambda folder: (runs.index(folder.parent), _step(folder)))
    return Selection(tuple(map(str, kept)), tuple(left_out))


def select_policies(text: str) -> Selection:
    """The policies that ``--policy`` names: adapters without weights and policy files; patterns match policy files.

    Raises:
        UserError: a pattern matches nothing.
    """
    names: list[str] = []
    for part in _parts(text):
        if not glob.has_magic(part):
            names.append(part)
            continue
        matches = sorted(glob.glob(str(Path(part).expanduser())), key=_natural)
        if not matches:
            raise UserError(f"--policy {part} matches no policy file")
        names += matches
    return Selection(tuple(dict.fromkeys(names)), ())


def _parts(text: str) -> list[str]:
    if Path(text).expanduser().exists():
        return [text]
    return [part for part in map(str.strip, text.split(",")) if part]


def _matching(pattern: str, every: int | None) -> tuple[list[Path], list[str]]:
    """Complete step folders that a pattern matches, and why others aren't."""
    starts: Sequence[Path] = [Path(), *(() if Path(pattern).expanduser().is_absolute() else default_places())]
    matches: list[Path] = []
    for start in starts:
        matches = [Path(path) for path in glob.glob(str(start / Path(pattern).expanduser()))]
        if matches:
            break
    folders: list[Path] = []
    left_out: list[str] = []
    for match in sorted(matches, key=_natural):
        if _STEP.fullmatch(match.name):
            if every is not None and _step(match) % every:
                continue
            wrong = _what_is_wrong(match)
            folders += [] if wrong else [match]
            left_out += [wrong] if wrong else []
        elif match.is_dir() and (steps := step_folders(match)):
            folders += steps if every is not None else steps[-1:]
        else:
            left_out.append(f"{match} isn't a checkpoint: it isn't called step_<N> and holds no complete one")
    return folders, left_out


def _what_is_wrong(folder: Path) -> str:
    """Why a step folder can't be evaluated; empty if it looks whole (its digest is taken later)."""
    try:
        read_policy_file(folder)
        verify_safetensors(folder / MODEL_FILE)
    except UserError as error:
        return str(error)
    return ""


def _steps_of(name: str) -> Iterable[Path]:
    found = resolve(name).path
    return [found] if _STEP.fullmatch(Path(name).name) else step_folders(found.parent)


def _step(folder: Path) -> int:
    match = _STEP.fullmatch(folder.name)
    if match is None:
        raise UserError(f"{folder} isn't a checkpoint: the folder must be called step_<N>")
    return int(match[1])


def _natural(path: str | Path) -> list[tuple[int, str]]:
    """Sorts ``step_9000`` before ``step_10000``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]
