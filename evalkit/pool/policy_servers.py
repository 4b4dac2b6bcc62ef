"""The policy servers of a crew: one for each policy at each place of the plan, started, renewed and given up."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalkit.core.errors import HarnessError, UserError
from evalkit.pool.bound import BoundPolicy
from evalkit.pool.jobs import PolicyFactory
from evalkit.pool.placement import ServerPlace
from evalkit.pool.policy_server import NotLoaded, PolicyRoad, PolicyServer
from evalkit.pool.ray_session import on_node, ray, why_it_died

START_LIMIT_S = 600.0
"""Loading a large policy takes minutes."""
START_TRIES = 2
ASK_LIMIT_S = 5.0
RAYS_PARTS = 10_000
"""Ray counts devices in such parts: three thirds, each rounded up, would be more than the whole."""
Key = tuple[str, int]
"""Policy, number of the place."""


class ServerNotStartedError(HarnessError):
    """A policy server didn't come up.

    Args:
        kind: ``raised``: the policy's loading raised; bad input, unless it loads elsewhere. ``died``, ``memory``,
            ``slow``: may be the device's fault.
        message: one line for people.
    """

    def __init__(self, kind: Literal["raised", "died", "memory", "slow"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, kw_only=True)
class _Launched:
    server: Any
    spec: Any
    """Reference to the policy's declaration, or to why it can't be loaded."""


class PolicyServers:
    """Needs a ``ray_session``.

    Args:
        makers: policy digest -> maker.
        limit_s: how long a call may take.
        max_batch: most observations in one call of a policy; None: all that wait.
        environment: variables for the servers' processes.
    """

    def __init__(
        self,
        makers: Mapping[str, PolicyFactory],
        *,
        limit_s: float,
        max_batch: int | None,
        environment: Mapping[str, str],
    ) -> None:
        self._makers, self._limit_s, self._environment = dict(makers), limit_s, dict(environment)
        self._caps: dict[str, int | None] = dict.fromkeys(makers, max_batch)
        self._roads: dict[Key, PolicyRoad] = {}
        self._generations = 0
        self._heeded: dict[int, tuple[int, bool]] = {}
        """Generation -> how many times out of memory were answered for, and how."""

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies that have servers, or are to have some."""
        return tuple(self._makers)

    @property
    def batch_sizes(self) -> dict[int, int]:
        """Batch size -> number of batches of the present servers."""
        sizes: Counter[int] = Counter()
        for road in self._roads.values():
            sizes.update(ray.get(road.server.batch_sizes.remote(), timeout=self._limit_s))
        return dict(sizes)

    def road(self, policy: str, place: int) -> PolicyRoad | None:
        """The way to a server."""
        return self._roads.get((policy, place))

    def find(self, generation: int) -> Key | None:
        """Which server has this number, or None if it is no more."""
        return next((key for key, road in self._roads.items() if road.generation == generation), None)

    def start_all(self, places: Mapping[int, ServerPlace]) -> dict[Key, ServerNotStartedError]:
        """Start a server of every policy at every place, all at the same time. Returns those that didn't come up."""
        launched = {
            (policy, number): self._launch(policy, place) for policy in self._makers for number, place in places.items()
        }
        return self._finish(launched)

    def start(self, key: Key, place: ServerPlace) -> None:
        """Start one server, or renew it.

        Raises:
            ServerNotStartedError: it doesn't come up, after several tries.
        """
        self.stop(key)
        for attempt in range(1, START_TRIES + 1):
            failure = self._finish({key: self._launch(key[0], place)}).get(key)
            if failure is None:
                return
            if attempt == START_TRIES or failure.kind == "raised":
                raise failure

    def runs(self, policy: str) -> bool:
        """Whether a policy has a server."""
        return any(name == policy for name, _ in self._roads)

    def others_run(self, policy: str) -> bool:
        """Whether another policy has a server."""
        return any(name != policy for name, _ in self._roads)

    def stop(self, key: Key) -> None:
        """End a server, if it is there."""
        road = self._roads.pop(key, None)
        if road is not None:
            ray.kill(road.server)

    def drop(self, policy: str) -> None:
        """Give up a policy and all its servers."""
        del self._makers[policy]
        for key in [key for key in self._roads if key[0] == policy]:
            self.stop(key)

    def learnt(self, key: Key) -> bool:
        """Whether a server that ran out of memory now makes do with smaller batches. Later servers start with those."""
        policy, generation = key[0], self._roads[key].generation
        try:
            now, times = ray.get(self._roads[key].server.memory.remote(), timeout=ASK_LIMIT_S)
        except (ray.exceptions.RayError, TimeoutError):
            return False  # it died of it, or is busy for longer than anybody waits: it must be renewed
        heeded, answer = self._heeded.get(generation, (0, False))
        if times > heeded:  # else another job of the same batch has asked
            before = self._caps[policy]
            answer = now is not None and (before is None or now < before)
            self._caps[policy] = now if answer else before
            self._heeded[generation] = times, answer
        return answer

    def caps(self) -> dict[str, tuple[int | None, int]]:
        """For each policy: the smallest limit a server came to, and how often memory wasn't enough. Skips the dead."""
        found: dict[str, tuple[int | None, int]] = {}
        for (policy, _), road in self._roads.items():
            try:
                cap, times = ray.get(road.server.memory.remote(), timeout=ASK_LIMIT_S)
            except (ray.exceptions.RayError, TimeoutError):
                continue
            known, before = found.get(policy, (None, 0))
            smallest = min((value for value in (known, cap) if value is not None), default=None)
            found[policy] = smallest, before + times
        return found

    def close(self) -> None:
        """End all servers."""
        for key in list(self._roads):
            self.stop(key)

    def _launch(self, policy: str, place: ServerPlace) -> _Launched:
        options: dict[str, Any] = {"num_cpus": place.cpus, "max_restarts": 0, "max_concurrency": 1000}
        if place.node:
            options["scheduling_strategy"] = on_node(place.node)
            # Reserved, so that other users of the cluster don't count on it; which GPU it is, the plan says.
            options["num_gpus"] = math.floor(place.share * RAYS_PARTS) / RAYS_PARTS if place.device is not None else 0
        maker = BoundPolicy(
            make=self._makers[policy],
            device=place.device,
            max_batch=self._caps[policy],
            environment={**self._environment, **(place.device.environment if place.device is not None else {})},
        )
        server = ray.remote(**options)(PolicyServer).remote(maker)
        return _Launched(server=server, spec=server.spec.remote())

    def _finish(self, launched: Mapping[Key, _Launched]) -> dict[Key, ServerNotStartedError]:
        failures: dict[Key, ServerNotStartedError] = {}
        until = time.monotonic() + START_LIMIT_S
        for key, one in launched.items():
            try:
                spec = ray.get(one.spec, timeout=max(0.0, until - time.monotonic()))
            except ray.exceptions.GetTimeoutError:
                ray.kill(one.server)
                what = f"the policy server didn't start within {START_LIMIT_S:g} s"
                failures[key] = ServerNotStartedError("slow", what)
            except ray.exceptions.RayError as error:  # also where the node is gone on which it was to start
                failures[key] = died_at_start(error)
            else:
                if isinstance(spec, NotLoaded):
                    ray.kill(one.server)
                    failures[key] = ServerNotStartedError(spec.kind, spec.message)
                    continue
                generation, self._generations = self._generations, self._generations + 1
                road = PolicyRoad(server=one.server, spec=spec, generation=generation, limit_s=self._limit_s)
                self._roads[key] = road
        return failures


def cannot_be_loaded(failure: ServerNotStartedError) -> UserError:
    """A policy that comes up nowhere is bad input."""
    return UserError(f"the policy can't be loaded: {failure}")


def died_at_start(error: Exception) -> ServerNotStartedError:
    """What Ray's error about a server that died before it could say anything means, in one line."""
    if getattr(error, "actor_init_failed", False):  # its maker can't be read there; the trace ends with why
        told = [line for line in str(error).splitlines() if line.strip() and not line[0].isspace()]
        return ServerNotStartedError("raised", told[-1])
    return ServerNotStartedError("died", f"its process died: {why_it_died(error)}")
