"""Temporal ensembling: a policy is asked at every step, and what its chunks say of one moment is averaged.

Source: ACT (Zhao et al. 2023, "Learning fine-grained bimanual manipulation with low-cost hardware"): the prediction
made i chunks after the oldest one that still speaks of the moment has weight exp(-decay * i).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.contract import ActionChunk, BatchPolicy, EndingPolicy, EpisodeInfo, Observation, Policy, PolicySpec

_QUATERNIONS = (slice(3, 7), slice(11, 15))


class EnsembledPolicy:
    """Implements ``Policy`` and ``EndingPolicy``; returns one action at a time.

    Args:
        policy: asked at every step; closed with it.
        decay: 0 averages evenly; ACT's own code uses 0.01. Larger: the older a prediction, the more it counts.

    Raises:
        UserError: the policy's chunks have one action, or its drive isn't its own.
    """

    def __init__(self, policy: Policy, decay: float) -> None:
        self.spec = ensembled(policy.spec)
        self._policy, self._decay, self._steps = policy, decay, policy.spec.chunk_steps
        self._chunks: dict[str, deque[tuple[int, ActionChunk]]] = {}

    def reset(self, info: EpisodeInfo) -> None:
        """Start an episode."""
        self._policy.reset(info)
        self._chunks[info.session] = deque()

    def act(self, observation: Observation) -> ActionChunk:
        """Ask, and average. Returns (1, 14) or (1, 16).

        Raises:
            PolicyError: the session was never reset, or whatever the policy raises.
        """
        return self._averaged(observation, self._policy.act(observation))

    def end(self, session: str, success: bool | None) -> None:
        """Forget the episode's chunks."""
        self._chunks.pop(session, None)
        if isinstance(self._policy, EndingPolicy):
            self._policy.end(session, success)

    def close(self) -> None:
        """Close the policy."""
        self._chunks.clear()
        self._policy.close()

    def _averaged(self, observation: Observation, chunk: Any) -> ActionChunk:
        chunks = self._chunks.get(observation.session)
        if chunks is None:
            what = f"policy {self.spec.name} got session {observation.session!r} before its reset"
            raise PolicyError("session", what)
        actions = np.asarray(chunk, np.float64)
        if actions.ndim != 2 or not len(actions):
            raise PolicyError("action_shape", f"policy {self.spec.name} returned actions of shape {actions.shape}")
        chunks.append((observation.step, actions))
        while chunks[0][0] + len(chunks[0][1]) <= observation.step:
            chunks.popleft()
        said = [rows[observation.step - start] for start, rows in chunks if start + len(rows) > observation.step]
        return self._mean(np.stack(said))[None]

    def _mean(self, said: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of (predictions, dimension), oldest first. A quaternion and its negative are one rotation."""
        if self.spec.action_type == "ee":
            for part in _QUATERNIONS:
                against = (said[:, part] * said[-1, part]).sum(axis=1, keepdims=True) < 0
                said[:, part] = np.where(against, -said[:, part], said[:, part])
        mean: NDArray[np.float64] = np.average(said, axis=0, weights=np.exp(-self._decay * np.arange(len(said))))
        if self.spec.action_type == "ee":
            for part in _QUATERNIONS:
                mean[part] /= np.linalg.norm(mean[part])
        return mean


class EnsembledBatchPolicy(EnsembledPolicy):
    """One whose policy decides for several sessions at once."""

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """See ``BatchPolicy``."""
        assert isinstance(self._policy, BatchPolicy)
        chunks = self._policy.act_batch(observations)
        return [self._averaged(row, chunk) for row, chunk in zip(observations, chunks, strict=True)]


def with_ensembling(policy: Policy, decay: float | None) -> Policy:
    """The policy, ensembled if there is a decay."""
    if decay is None:
        return policy
    return EnsembledBatchPolicy(policy, decay) if isinstance(policy, BatchPolicy) else EnsembledPolicy(policy, decay)


def ensembled(spec: PolicySpec) -> PolicySpec:
    """The declaration of a policy with its chunks averaged.

    Raises:
        UserError: there is nothing to average.
    """
    if spec.chunk_steps < 2 or spec.drive != "act":
        what = f"{spec.chunk_steps} action" if spec.drive == "act" else f"the drive {spec.drive}"
        raise UserError(f"policy {spec.name} can't be ensembled: it has chunks of {what}; leave ensemble out")
    return replace(spec, chunk_steps=1, execute_steps=1, stateful=True)
