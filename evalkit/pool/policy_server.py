"""The policy server as an actor of Ray, and how sim actors ask it: the short way on one machine, else through Ray."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from evalkit.core.errors import EvalkitError, PolicyLostError
from evalkit.episode.decide import Decision
from evalkit.policy.contract import EpisodeInfo, Observation, PolicySpec
from evalkit.pool.jobs import PolicyFactory
from evalkit.pool.local_caller import Call, LocalCaller, late
from evalkit.pool.local_road import LocalAddress, RoadClosedError
from evalkit.pool.policy_desk import PolicyDesk
from evalkit.pool.ray_session import ray, why_it_died
from evalkit.pool.within_memory import OUT_OF_MEMORY

REASON_LIMIT_S = 10.0
"""How long to wait for Ray's account of why a server is gone."""
CAUSE_LENGTH = 600
"""Most characters of a cause: a network's list of missing weights fills pages."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PolicyRoad:
    """How a sim actor reaches the policy."""

    server: Any
    """Handle of the ``PolicyServer`` actor."""
    spec: PolicySpec
    generation: int
    """Counts the servers of a run."""
    limit_s: float


@dataclass(frozen=True, kw_only=True)
class NotLoaded:
    """Why there is no policy. A value, because an exception would arrive as text with Ray's trace in it."""

    kind: Literal["raised", "memory"]
    message: str
    """One line: the cause alone."""


def not_loaded(error: BaseException) -> NotLoaded:
    """What to tell the driver of an error in loading."""
    text = " ".join(str(error).split())[:CAUSE_LENGTH]
    if not isinstance(error, EvalkitError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    is_memory = isinstance(error, PolicyLostError) and error.kind == OUT_OF_MEMORY
    return NotLoaded(kind="memory" if is_memory else "raised", message=text)


class PolicyServer:
    """Owns the policy; see ``PolicyDesk``. Where loading failed, ``spec`` says why and nothing else may be asked."""

    def __init__(self, make_policy: PolicyFactory) -> None:
        self._failure: NotLoaded | None = None
        try:
            self._desk = PolicyDesk(make_policy)
        except BaseException as error:  # libraries that don't find what they need may even call sys.exit
            _log.error("the policy can't be loaded", exc_info=error)
            self._failure = not_loaded(error)

    async def spec(self) -> PolicySpec | NotLoaded:
        """The policy's declaration, once it is loaded; or why it isn't."""
        return self._failure or self._desk.policy.spec

    async def address(self) -> LocalAddress | None:
        """Where callers on this machine can reach it without Ray; None if they can't."""
        return self._desk.address

    async def reset(self, info: EpisodeInfo) -> Decision:
        """Start an episode."""
        return await self._ask("reset", info)  # type: ignore[no-any-return]

    async def act(self, observation: Observation) -> Decision:
        """One decision."""
        return await self._ask("act", observation)  # type: ignore[no-any-return]

    async def end(self, session: str, success: bool | None) -> None:
        """An episode is over."""
        await self._ask("end", (session, success))

    async def memory(self) -> tuple[int | None, int]:
        """Most observations in one call as it has become, and how often memory wasn't enough."""
        policy = self._desk.policy
        return getattr(policy, "max_batch", None), getattr(policy, "times_out", 0)

    async def batch_sizes(self) -> dict[int, int]:
        """Batch size -> number of batches so far."""
        return dict(self._desk.batch_sizes)

    async def _ask(self, call: Call, argument: Any) -> Any:
        return await asyncio.wrap_future(self._desk.ask(call, argument))


class RemoteDecider:
    """A ``Decider`` behind a policy server. Its calls raise ``PolicyLostError`` if the server is gone or hangs."""

    def __init__(self, road: PolicyRoad) -> None:
        self._road = road
        self._is_lost = False
        """Whether the last call found nobody."""
        self._caller: LocalCaller | None = None
        self._found = False

    @property
    def spec(self) -> PolicySpec:
        """See ``Decider``."""
        return self._road.spec

    @property
    def is_local(self) -> bool:
        """Whether the short way is in use."""
        return self._caller is not None

    def reset(self, info: EpisodeInfo) -> Decision:
        """See ``Decider``."""
        server = self._road.server
        return self._ask("reset", info, lambda: server.reset.remote(info))  # type: ignore[no-any-return]

    def decide(self, observation: Observation) -> Decision:
        """See ``Decider``."""
        server = self._road.server
        return self._ask("act", observation, lambda: server.act.remote(observation))  # type: ignore[no-any-return]

    def end(self, session: str, success: bool | None) -> None:
        """See ``Decider``."""
        if self._is_lost:  # it has forgotten the episode, or would let this one wait as long as the last one
            return
        server = self._road.server
        try:
            self._ask("end", (session, success), lambda: server.end.remote(session, success))
        except PolicyLostError as error:  # the next trial meets it
            _log.warning("policy %s wasn't told the end of %s: %s", self.spec.name, session, error)

    def close(self) -> None:
        """Hang up; the next call connects again."""
        if self._caller is not None:
            self._caller.close()
        self._caller, self._found = None, False

    def _ask(self, call: Call, argument: Any, through_ray: Callable[[], Any]) -> Any:
        self._is_lost = False
        try:
            return self._ask_somehow(call, argument, through_ray)
        except PolicyLostError as error:
            self._is_lost = error.kind in ("policy_timeout", "policy_server_died")
            raise

    def _ask_somehow(self, call: Call, argument: Any, through_ray: Callable[[], Any]) -> Any:
        if not self._found:
            self._caller, self._found = self._look(), True
        if self._caller is None:
            return self._await(through_ray(), call)
        try:
            return self._caller.ask(call, argument)
        except RoadClosedError as error:
            self.close()
            raise self._died(call, self._reason(error)) from None
        except BaseException:
            self.close()  # interrupted between question and answer: the next answer would be the wrong one
            raise

    def _look(self) -> LocalCaller | None:
        """The short way, if the server is on this machine. If it died meanwhile, Ray says so at the next call."""
        address: LocalAddress | None = self._await(self._road.server.address.remote(), "address")
        if address is None:
            return None
        try:
            return LocalCaller(self.spec, address, self._road.limit_s)
        except RoadClosedError as error:
            _log.info("policy %s is asked through Ray: %s", self.spec.name, error)
            return None

    def _reason(self, error: RoadClosedError) -> str:
        """Why the server is gone: Ray knows of signals and of the kernel's want of memory."""
        try:
            ray.get(self._road.server.spec.remote(), timeout=REASON_LIMIT_S)
        except ray.exceptions.RayActorError as told:
            return why_it_died(told)
        except ray.exceptions.GetTimeoutError:
            pass  # it hangs: the socket's account is all there is
        return str(error)

    def _await(self, reference: Any, call: str) -> Any:
        try:
            return ray.get(reference, timeout=self._road.limit_s)
        except ray.exceptions.GetTimeoutError:
            raise late(self.spec, call, self._road.limit_s) from None
        except ray.exceptions.RayActorError as error:
            raise self._died(call, why_it_died(error)) from None
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, PolicyLostError):
                raise error.cause from None
            raise

    def _died(self, call: str, reason: str) -> PolicyLostError:
        what = f"the server of policy {self.spec.name} died during {call}: {reason}"
        return PolicyLostError("policy_server_died", what)
