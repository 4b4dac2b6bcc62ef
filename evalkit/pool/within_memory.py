"""A policy that stays within its device's memory: batches are cut to a size, and smaller ones follow when it runs out.

Batching never changes an outcome (a rule of the contract), so neither does the size of the pieces.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evalkit.core.errors import PolicyError, PolicyLostError
from evalkit.policy.contract import ActionChunk, BatchPolicy, EndingPolicy, EpisodeInfo, Observation, Policy

OUT_OF_MEMORY = "policy_out_of_memory"
"""Kind of the error: the device's memory isn't enough, which says nothing about the trial."""


class WithinMemory:
    """Wraps a policy. Make it with ``within_memory``.

    Args:
        policy: closed with it.
        max_batch: most observations in one call; None: no limit until memory runs out.
    """

    def __init__(self, policy: Policy, max_batch: int | None) -> None:
        self._policy = policy
        self.spec = policy.spec
        self.max_batch = max_batch
        """Lowered to half of a batch for which memory wasn't enough."""
        self.times_out = 0
        """How often memory wasn't enough."""

    def reset(self, info: EpisodeInfo) -> None:
        """See ``Policy``.

        Raises:
            PolicyLostError: out of memory.
        """
        try:
            self._policy.reset(info)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise self._lost(error, 1) from error

    def act(self, observation: Observation) -> ActionChunk:
        """See ``Policy``.

        Raises:
            PolicyLostError: out of memory.
        """
        try:
            return self._policy.act(observation)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise self._lost(error, 1) from error

    def close(self) -> None:
        """See ``Policy``."""
        self._policy.close()

    def _lost(self, error: Exception, size: int) -> PolicyLostError:
        self.times_out += 1
        if size > 1:
            self.max_batch = size // 2
        if torch := sys.modules.get("torch"):
            torch.cuda.empty_cache()  # does nothing where CUDA was never used
        first = (str(error).splitlines() or [""])[0][:300]
        what = f"policy {self.spec.name} ran out of memory with {size} observation{'s' if size > 1 else ''}: {first}"
        return PolicyLostError(OUT_OF_MEMORY, what)


class _Ending(WithinMemory):
    def end(self, session: str, success: bool | None) -> None:
        assert isinstance(self._policy, EndingPolicy)
        self._policy.end(session, success)


class _Batched(WithinMemory):
    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """See ``BatchPolicy``.

        A stateful policy may have taken half of a step when memory ran out: its episodes start again, with the smaller
        batches. Another one is simply asked again.

        Raises:
            PolicyLostError: out of memory.
            PolicyError: a piece gave a wrong number of chunks.
        """
        assert isinstance(self._policy, BatchPolicy)
        chunks: list[ActionChunk] = []
        while len(chunks) < len(observations):
            left = observations[len(chunks) :]
            piece = left[: self.max_batch or len(left)]
            try:
                answer = self._policy.act_batch(piece)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                lost = self._lost(error, len(piece))
                if self.spec.stateful or len(piece) == 1:
                    raise lost from error
                continue
            if len(answer) != len(piece):
                what = f"policy {self.spec.name} gave {len(answer)} chunks for a batch of {len(piece)}"
                raise PolicyError("action_shape", what)
            chunks += answer
        return chunks


class _BatchedEnding(_Batched, _Ending):
    pass


def within_memory(policy: Policy, max_batch: int | None) -> WithinMemory:
    """The policy, of the same kind as it is: whether it takes batches and wants to know of ends shows in its type."""
    kinds = {
        (False, False): WithinMemory,
        (True, False): _Batched,
        (False, True): _Ending,
        (True, True): _BatchedEnding,
    }
    return kinds[isinstance(policy, BatchPolicy), isinstance(policy, EndingPolicy)](policy, max_batch)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device's memory wasn't enough: torch's own error, or what other libraries and processes call it."""
    if "OutOfMemoryError" in {kind.__name__ for kind in type(error).__mro__}:
        return True
    text = str(error).lower()
    # RESOURCE_EXHAUSTED: jax. The others: CUDA, its libraries, and torch's error told by another process.
    return "out of memory" in text and ("cuda" in text or "resource_exhausted" in text or "outofmemoryerror" in text)
