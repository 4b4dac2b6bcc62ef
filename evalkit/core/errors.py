"""Errors of evalkit.

EvalkitError
├── UserError            the caller can mend it: bad name, missing file, wrong shape (exit code 2)
│   └── UnknownNameError a name that isn't registered; carries the nearest valid ones
├── PolicyError          the policy broke its contract during a trial
├── SimulatorError       the simulator failed (crash, hang, task code raised)
│   └── UnstableSceneError   RoboTwin judged the scene unstable: a reason to skip a seed, not a crash
└── HarnessError         evalkit itself failed
    ├── StorageError     a disk is full or broken: nothing written before is lost
    └── PolicyLostError  the way to a policy broke: its server is gone, its process died or hangs
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EvalkitError(Exception):
    """Base of all errors raised on purpose by evalkit."""


class UserError(EvalkitError):
    """Bad input. The message is one line: the object, the value, the remedy."""


class UnknownNameError(UserError):
    """A name that isn't in a closed set of names.

    Args:
        kind: what the name names, e.g. ``"task"``.
        name: the name as given.
        known: the valid names.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        elif len(names) <= 12:
            hint = f"choose from {', '.join(names) or '(none)'}"
        else:
            hint = f"{len(names)} are known, e.g. {', '.join(names[:3])}"
        super().__init__(f"unknown {kind} {name!r}: {hint}")
        self.kind, self.name, self.near = kind, name, tuple(near)
        self._known = tuple(names)

    def __reduce__(self) -> tuple[object, ...]:
        return UnknownNameError, (self.kind, self.name, self._known)


class PolicyError(EvalkitError):
    """The policy broke its contract in a trial.

    Args:
        kind: short machine-readable kind, e.g. ``"action_shape"``, ``"action_nonfinite"``, ``"exception"``.
        message: one line for people.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return PolicyError, (self.kind, str(self))


class SimulatorError(EvalkitError):
    """The simulator failed.

    Args:
        kind: e.g. ``"crash"``, ``"hang"``, ``"task_code"``, ``"black_frame"``, ``"setup"``.
        message: one line for people.
        signal: number of the signal that ended the worker process, if one did.
        traceback_tail: the last lines of the foreign traceback or log, if there are any.
    """

    def __init__(self, kind: str, message: str, *, signal: int | None = None, traceback_tail: str = "") -> None:
        super().__init__(message)
        self.kind, self.signal, self.traceback_tail = kind, signal, traceback_tail

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_simulator_error, (type(self), self.kind, str(self), self.signal, self.traceback_tail)


class UnstableSceneError(SimulatorError):
    """RoboTwin's stability test failed for this seed (objects still turn after settling)."""


class HarnessError(EvalkitError):
    """evalkit failed: a bug or a broken environment, never the policy's fault."""


class StorageError(HarnessError):
    """A disk doesn't take what is written: it is full, a quota is used up, or it is broken."""


class PolicyLostError(HarnessError):
    """The way to a policy broke. Says nothing about the policy: the trial is tried again.

    Args:
        kind: e.g. ``"policy_lost"``, ``"policy_crash"``, ``"policy_timeout"``, ``"policy_server_died"``.
        message: one line for people.
        signal: number of the signal that ended the policy's process, if one did.
        traceback_tail: the last lines of the policy's log, if there are any.
    """

    def __init__(self, kind: str, message: str, *, signal: int | None = None, traceback_tail: str = "") -> None:
        super().__init__(message)
        self.kind, self.signal, self.traceback_tail = kind, signal, traceback_tail

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_policy_lost, (self.kind, str(self), self.signal, self.traceback_tail)


def _rebuild_policy_lost(kind: str, message: str, signal: int | None, tail: str) -> PolicyLostError:
    return PolicyLostError(kind, message, signal=signal, traceback_tail=tail)


def _rebuild_simulator_error(
    cls: type[SimulatorError], kind: str, message: str, signal: int | None, tail: str
) -> SimulatorError:
    return cls(kind, message, signal=signal, traceback_tail=tail)
