"""Faults on order: a small YAML language for the fake backend and the drill's policy.

    step_s: 0.01                  # wall time of an action; also setup_s, success_after_steps
    no_start: no Vulkan device    # every simulator process ends at its start with these words
    faults:
    - {where: sim, kind: segfault, task: click_bell, seed: 100002, step: 3, attempts: 1}
    - {where: policy, kind: nan, task: click_bell, seed: 100004, step: 3}

``step`` is the number of actions executed before; left out, the fault strikes while the scene is built (the policy's:
at its first decision). ``attempts`` is how many attempts it strikes; left out, every one. ``seconds`` is how long a
``slow`` one takes.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.tasks import TASKS
from evalkit.sim.fake.world import AT_RESET, SEVENTHS, FakeWorld, Fault, FaultKind

SIM_KINDS: Mapping[str, tuple[FaultKind, int]] = {
    "segfault": ("crash", signal.SIGSEGV),
    "kill": ("crash", signal.SIGKILL),
    "hang": ("hang", 0),
    "memory": ("memory", 0),
    "exception": ("exception", 0),
    "slow": ("slow", 0),
    "unstable": ("unstable", 0),
    "black": ("black_frame", 0),
    "nan": ("nan_state", 0),
}
"""Word of the language -> the fake world's kind of fault, and the signal of a crash."""
POLICY_KINDS = ("segfault", "kill", "hang", "exception", "slow", "nan", "inf", "shape", "gripper")
_FAULT_WORDS = ("where", "kind", "task", "seed", "step", "attempts", "seconds")
_WORLD_WORDS = ("step_s", "setup_s", "success_after_steps", "no_start")


@dataclass(frozen=True, kw_only=True)
class PolicyFault:
    """Something that goes wrong in the policy, in one scene at one moment."""

    kind: str
    """One of ``POLICY_KINDS``."""
    task: str
    seed: int
    step: int = 0
    """Strikes in the decision whose chunk has this action."""
    times: int | None = None
    """So often over all processes; None for always."""
    slow_s: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Faults:
    """A fault file, read."""

    world: FakeWorld
    policy: tuple[PolicyFault, ...]


def read_faults(path: Path, world: FakeWorld = SEVENTHS) -> Faults:
    """Read a file; marks of faults that strike a limited number of times lie beside it, in ``<file>.marks``.

    Args:
        path: the file.
        world: what the faults are put into.

    Raises:
        UserError: it isn't there, or something in it isn't of the language.
    """
    try:
        values = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"fault file {path} can't be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UserError(f"fault file {path} isn't YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise UserError(f"fault file {path} must be a mapping with the key faults, not {type(values).__name__}")
    return parse_faults(values, path.with_name(f"{path.name}.marks"), source=f"fault file {path}", world=world)


def parse_faults(
    values: Mapping[str, Any], marks: Path, *, source: str = "faults", world: FakeWorld = SEVENTHS
) -> Faults:
    """Faults from plain values.

    Args:
        values: the language's mapping.
        marks: folder for the marks of strikes; made if needed.
        source: names the values in errors.
        world: what the faults are put into.

    Raises:
        UserError: something isn't of the language.
    """
    for word in values:
        if word not in (*_WORLD_WORDS, "faults"):
            raise UnknownNameError(f"key in {source}", str(word), (*_WORLD_WORDS, "faults"))
    listed = values.get("faults", [])
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise UserError(f"{source}: faults must be a list, not {type(listed).__name__}")
    sim: list[Fault] = []
    policy: list[PolicyFault] = []
    for number, entry in enumerate(listed, start=1):
        where = f"{source}, fault {number}"
        entry = _checked(entry, where)
        if entry["where"] == "sim":
            sim.append(_sim_fault(entry, where))
        else:
            policy.append(_policy_fault(entry, where))
    if any(times is not None for times in [*(fault.times for fault in sim), *(fault.times for fault in policy)]):
        marks.mkdir(parents=True, exist_ok=True)
    settings = {word: values[word] for word in _WORLD_WORDS if word in values}
    return Faults(world=replace(world, faults=tuple(sim), memory=marks, **settings), policy=tuple(policy))


def _checked(entry: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise UserError(f"{where} must be a mapping like {{where: sim, kind: hang, seed: 100002}}, not {entry!r}")
    for word in entry:
        if word not in _FAULT_WORDS:
            raise UnknownNameError(f"key in {where}", str(word), _FAULT_WORDS)
    if entry.get("where") not in ("sim", "policy"):
        raise UserError(f"{where}: where is {entry.get('where')!r}; it is sim or policy")
    for word, kinds in (("seed", int), ("step", int), ("attempts", int), ("seconds", (int, float))):
        if word in entry and not isinstance(entry[word], kinds):
            raise UserError(f"{where}: {word} is {entry[word]!r}; it is a number")
    if "seed" not in entry:
        raise UserError(f"{where} names no seed: say in which scene it strikes")
    if entry.get("task", TASKS[0]) not in TASKS:
        raise UnknownNameError("task", str(entry["task"]), TASKS)
    return entry


def _sim_fault(entry: Mapping[str, Any], where: str) -> Fault:
    if entry.get("kind") not in SIM_KINDS:
        raise UnknownNameError(f"kind in {where}", str(entry.get("kind")), SIM_KINDS)
    kind, number = SIM_KINDS[entry["kind"]]
    if kind == "unstable" and "step" in entry:
        raise UserError(f"{where}: a scene is unstable while it is built: leave step out")
    return Fault(
        kind=kind,
        signal=number,
        seed=entry["seed"],
        task=entry.get("task"),
        step=entry.get("step", 0 if kind in ("black_frame", "nan_state") else AT_RESET),
        times=entry.get("attempts"),
        slow_s=float(entry.get("seconds", 1.0)),
    )


def _policy_fault(entry: Mapping[str, Any], where: str) -> PolicyFault:
    if entry.get("kind") not in POLICY_KINDS:
        raise UnknownNameError(f"kind in {where}", str(entry.get("kind")), POLICY_KINDS)
    if "task" not in entry:
        raise UserError(f"{where} names no task: a policy's fault needs it to know its scene")
    return PolicyFault(
        kind=entry["kind"],
        task=entry["task"],
        seed=entry["seed"],
        step=entry.get("step", 0),
        times=entry.get("attempts"),
        slow_s=float(entry.get("seconds", 1.0)),
    )
