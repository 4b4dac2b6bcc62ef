"""A caller of a policy server on its own machine."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from evalkit.core.errors import PolicyLostError
from evalkit.policy.contract import Observation, PolicySpec
from evalkit.pool.local_road import Line, LocalAddress, RoadClosedError, connect

Call = Literal["hello", "reset", "act", "end"]
HELLO = Observation(
    session="",
    step=0,
    instruction="",
    state=np.zeros(0),
    images={"hello": np.arange(192, dtype=np.uint8).reshape(8, 8, 3)},
)
"""Shows at the start whether shared memory works between the two ends."""
POLICY_LIMIT_S = 300.0
"""A decision that takes longer is a hang. Generous: the first one may compile kernels."""


def check_sum(observation: Observation) -> int:
    """The answer to a hello."""
    return sum(int(image.astype(np.int64).sum()) for image in observation.images.values())


class LocalCaller:
    """Asks a policy server on this machine.

    Args:
        spec: the policy's declaration, for messages.
        address: where it listens.
        limit_s: an answer that takes longer is a hang.

    Raises:
        RoadClosedError: nobody listens there, or pictures don't arrive.
        PolicyLostError: no answer in time.
    """

    def __init__(self, spec: PolicySpec, address: LocalAddress, limit_s: float = POLICY_LIMIT_S) -> None:
        self._spec, self._limit_s = spec, limit_s
        self._line = Line(connect(address, limit_s))
        try:
            if self.ask("hello", HELLO) != check_sum(HELLO):
                raise RoadClosedError("pictures don't arrive as they were sent")
        except BaseException:
            self.close()
            raise

    def ask(self, call: Call, argument: Any) -> Any:
        """One request; returns its answer. After an error the caller can't be used any more.

        Raises:
            PolicyLostError: no answer in time, or the server lost its policy.
            RoadClosedError: the server is gone.
            HarnessError: what its policy raised otherwise than as a value.
        """
        try:
            self._line.ask(call, argument)
            done, value = self._line.listen()
        except TimeoutError:
            raise late(self._spec, call, self._limit_s) from None
        if not done:
            raise value
        return value

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def late(spec: PolicySpec, call: str, limit_s: float) -> PolicyLostError:
    """The error for an answer that didn't come in time."""
    return PolicyLostError("policy_timeout", f"policy {spec.name} gave no answer to {call} within {limit_s:g} s")
