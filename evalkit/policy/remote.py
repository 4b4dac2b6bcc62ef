"""A policy of evalkit's own contract in another interpreter, as a policy of that contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from evalkit.policy.checkpoint import spec_from_json
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, Policy
from evalkit.policy.isolated import PolicyProcess, episode_values
from evalkit.policy.wire.connection import CALL_S

PACKAGE = Path(__file__).resolve().parents[1]


class RemotePolicy:
    """Implements ``Policy``; loads the policy at once.

    Args:
        process: a process of the form ``native``; closed with it.

    Raises:
        UserError: the policy can't be loaded.
    """

    def __init__(self, process: PolicyProcess) -> None:
        self._process = process
        process.start()
        self.spec = spec_from_json(process.declared["spec"])

    @property
    def pid(self) -> int | None:
        """Process id of the policy."""
        return self._process.pid

    def reset(self, info: EpisodeInfo) -> None:
        """See ``Policy``."""
        self._process.call("reset", episode_values(info))

    def act(self, observation: Observation) -> ActionChunk:
        """See ``Policy``."""
        chunk: ActionChunk = self._process.call("act", _values(observation))
        return chunk

    def end(self, session: str, success: bool | None) -> None:
        """See ``EndingPolicy``. A process that was lost isn't started again for this."""
        if self.pid is not None and self._process.declared["ends"]:
            self._process.call("end", session, success)

    def close(self) -> None:
        """See ``Policy``."""
        self._process.close()


class RemoteBatchPolicy(RemotePolicy):
    """One that decides for several sessions at once."""

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """See ``BatchPolicy``."""
        chunks: list[ActionChunk] = self._process.call("act_batch", [_values(row) for row in observations])
        return chunks


def load_remote(
    python: Path,
    *,
    name: str,
    device: str,
    adapter: str | None = None,
    file: Path | None = None,
    checkpoint: Path | None = None,
    call_s: float = CALL_S,
    threads: int = 1,
) -> Policy:
    """Load an adapter in another interpreter.

    Args:
        python: the interpreter: Python 3.11 or newer with numpy and what the adapter needs.
        name: of the policy, for messages.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:<n>"``.
        adapter: name of an adapter; or
        file: path of one.
        checkpoint: its step folder, if it has weights.
        call_s: how long a call may take.
        threads: CPU threads of its tensor library.

    Raises:
        UserError: the policy can't be loaded there.
    """
    options = {
        "evalkit": str(PACKAGE),
        "cwd": str(Path.cwd()),
        "adapter": adapter,
        "file": str(file) if file else None,
        "checkpoint": str(checkpoint) if checkpoint else None,
        "device": device,
        "threads": threads,
    }
    process = PolicyProcess(python, "native", options, name=name, call_s=call_s)
    process.start()
    return RemoteBatchPolicy(process) if process.declared["batched"] else RemotePolicy(process)


def _values(observation: Observation) -> dict[str, Any]:
    values = {field.name: getattr(observation, field.name) for field in fields(observation)}
    return {**values, "images": dict(observation.images), "history": [_values(row) for row in observation.history]}
