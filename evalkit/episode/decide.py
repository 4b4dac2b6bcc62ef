"""Asking a policy: every way it can fail becomes a value, and its time is measured where it runs."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evalkit.core.errors import PolicyError, PolicyLostError
from evalkit.core.record import ErrorInfo
from evalkit.policy.chunk import check_chunk
from evalkit.policy.contract import (
    ActionChunk,
    BatchPolicy,
    EndingPolicy,
    EpisodeInfo,
    Observation,
    Policy,
    PolicySpec,
)

TRACEBACK_LINES = 12
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A policy's answer: a checked chunk, or the reason there is none."""

    chunk: ActionChunk | None
    inference_s: float
    """Time the policy took; for a batch, the time of the whole batch."""
    error: ErrorInfo | None = None


class Decider(Protocol):
    """A policy as an episode uses it: in this process or behind a server.

    Failures of the policy are values. What is raised is a failure of the road to it: ``HarnessError``, most often
    ``PolicyLostError``.
    """

    @property
    def spec(self) -> PolicySpec:
        """The policy's declaration."""
        ...

    def reset(self, info: EpisodeInfo) -> Decision:
        """Start an episode; the decision's chunk is None."""
        ...

    def decide(self, observation: Observation) -> Decision:
        """One decision."""
        ...

    def end(self, session: str, success: bool | None) -> None:
        """Tell the policy that an episode is over. Raises nothing: the verdict is known, and stays."""
        ...


class LocalDecider:
    """A policy in this process."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def spec(self) -> PolicySpec:
        """See ``Decider``."""
        return self._policy.spec

    def reset(self, info: EpisodeInfo) -> Decision:
        """See ``Decider``."""
        return reset_policy(self._policy, info)

    def decide(self, observation: Observation) -> Decision:
        """See ``Decider``."""
        return decide_batch(self._policy, [observation])[0]

    def end(self, session: str, success: bool | None) -> None:
        """See ``Decider``."""
        end_policy(self._policy, session, success)


def reset_policy(policy: Policy, info: EpisodeInfo) -> Decision:
    """Call ``policy.reset``."""
    started = time.perf_counter()
    error = None
    try:
        policy.reset(info)
    except PolicyLostError:
        raise
    except Exception as raised:  # adapters are other people's code: whatever they raise is the policy's failure
        error = _describe(raised, f"policy {policy.spec.name} raised in reset")
    return Decision(chunk=None, inference_s=time.perf_counter() - started, error=error)


def end_policy(policy: Policy, session: str, success: bool | None) -> None:
    """Call ``policy.end``, if it has one. What it raises is logged: it can't change the trial that is over."""
    if not isinstance(policy, EndingPolicy):
        return
    try:
        policy.end(session, success)
    except Exception as error:  # see reset_policy
        what = f"policy {policy.spec.name} raised at the end of session {session}"
        _log.warning("%s: %s: %s", what, type(error).__name__, error)


def decide_batch(policy: Policy, observations: Sequence[Observation]) -> list[Decision]:
    """Ask for a decision on each observation, in one call if the policy can.

    An exception in a batch doesn't say whose it is: each observation is then asked for alone.
    """
    started = time.perf_counter()
    if len(observations) > 1 and isinstance(policy, BatchPolicy):
        try:
            chunks = policy.act_batch(observations)
        except PolicyLostError:
            raise
        except Exception:  # raised again below, for the observation that causes it
            return [_decide(policy, observation) for observation in observations]
        seconds = time.perf_counter() - started
        if len(chunks) != len(observations):
            what = f"policy {policy.spec.name} gave {len(chunks)} chunks for a batch of {len(observations)}"
            error = ErrorInfo(kind="action_shape", message=what)
            return [Decision(chunk=None, inference_s=seconds, error=error) for _ in observations]
        return [_checked(policy, chunk, seconds) for chunk in chunks]
    return [_decide(policy, observation) for observation in observations]


def _decide(policy: Policy, observation: Observation) -> Decision:
    started = time.perf_counter()
    try:
        chunk = policy.act(observation)
    except PolicyLostError:
        raise
    except Exception as raised:  # see reset_policy
        error = _describe(raised, f"policy {policy.spec.name} raised")
        return Decision(chunk=None, inference_s=time.perf_counter() - started, error=error)
    return _checked(policy, chunk, time.perf_counter() - started)


def _checked(policy: Policy, chunk: object, seconds: float) -> Decision:
    try:
        return Decision(chunk=check_chunk(chunk, policy.spec), inference_s=seconds)
    except PolicyError as error:
        info = ErrorInfo(kind=error.kind, message=str(error))
        return Decision(chunk=None, inference_s=seconds, error=info)


def _describe(raised: Exception, where: str) -> ErrorInfo:
    kind = raised.kind if isinstance(raised, PolicyError) else "exception"
    lines = "".join(traceback.format_exception(raised)).rstrip().splitlines()
    return ErrorInfo(
        kind=kind,
        message=f"{where}: {type(raised).__name__}: {raised}",
        traceback_tail="\n".join(lines[-TRACEBACK_LINES:]),
    )
