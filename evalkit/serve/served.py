"""The policy behind a server: one lock, sessions by connection and episode, counted steps."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError
from evalkit.core.rng import stream_seed
from evalkit.core.trial import ActionType
from evalkit.policy.checkpoint import spec_to_json
from evalkit.policy.chunk import check_chunk
from evalkit.policy.contract import ActionChunk, EndingPolicy, EpisodeInfo, Observation, Policy

DEFAULT_HORIZON_STEPS = 400
"""Told to policies when a client doesn't say how long an episode may be: RoboTwin's most frequent limit."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a client saw at one moment, as it sent it."""

    state: NDArray[np.float64]
    """(14,)"""
    endpose: NDArray[np.float64] | None
    """(16,), for policies of end effector poses."""
    images: Mapping[str, NDArray[np.uint8]]
    """Camera → (H, W, 3) RGB."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A chunk and the time it took."""

    actions: ActionChunk
    latency_ms: float


class ServedPolicy:
    """Calls a policy one request at a time.

    Args:
        policy: the policy; not closed here.
        identity: what it is, told to clients.
    """

    def __init__(self, policy: Policy, identity: Mapping[str, Any]) -> None:
        self._policy, self._lock = policy, threading.Lock()
        self.spec = policy.spec
        self.metadata: Mapping[str, Any] = {"server": "evalkit", "spec": spec_to_json(policy.spec), **identity}
        self._names = itertools.count(1)

    def client(self) -> Client:
        """State of a new connection."""
        return Client(self, f"client-{next(self._names)}")

    def reset(self, info: EpisodeInfo) -> None:
        """Start an episode."""
        with self._lock:
            self._policy.reset(info)

    def end(self, session: str, success: bool | None) -> None:
        """An episode is over."""
        if isinstance(self._policy, EndingPolicy):
            with self._lock:
                self._policy.end(session, success)

    def act(self, observation: Observation) -> Answer:
        """Decide.

        Raises:
            PolicyError: the policy refused, or its actions aren't what it declares.
        """
        with self._lock:
            started = time.perf_counter()
            chunk = check_chunk(self._policy.act(observation), self.spec)
            return Answer(actions=chunk, latency_ms=(time.perf_counter() - started) * 1000)


class Client:
    """What a server remembers of one connection: its episode.

    Args:
        served: the policy.
        name: of the connection.
    """

    def __init__(self, served: ServedPolicy, name: str) -> None:
        self._served, self._name = served, name
        self._episodes = 0
        self._steps = 0
        self._session: str | None = None
        self._past: deque[Observation] = deque(maxlen=served.spec.history_steps - 1)
        self._executed = 0
        """Actions of the last chunk, if the client executes it whole."""

    @property
    def action_type(self) -> ActionType:
        """What the policy's actions are."""
        return self._served.spec.action_type

    @property
    def history_steps(self) -> int:
        """How many observations the policy sees at a decision."""
        return self._served.spec.history_steps

    def reset(self, instruction: str, seed: int, horizon_steps: int | None = None) -> None:
        """Start an episode.

        Args:
            instruction: the sentence.
            seed: decides all randomness of the policy in the episode.
            horizon_steps: how many actions it may take.
        """
        self.end(None)  # a client that doesn't tell the end tells it by starting again
        self._episodes += 1
        self._steps, self._executed = 0, 0
        self._past.clear()
        self._session = f"{self._name}-{self._episodes}"
        self._served.reset(
            EpisodeInfo(
                session=self._session,
                instruction=instruction,
                policy_seed=seed,
                horizon_steps=horizon_steps or DEFAULT_HORIZON_STEPS,
            )
        )

    def end(self, success: bool | None) -> None:
        """The client's episode is over, if one is running: by its word, by the next one, or because it is gone.

        Args:
            success: the verdict, if the client knows one.
        """
        session, self._session = self._session, None
        if session is not None:
            self._served.end(session, success)

    def act(self, instruction: str, seen: Seen, *, step: int | None = None, between: Sequence[Seen] = ()) -> Answer:
        """Decide.

        Args:
            instruction: the sentence.
            seen: the present.
            step: actions executed so far; counted as if every chunk were executed whole if the client doesn't say.
            between: what was seen since the last decision, one action apart, oldest first; for a policy with a history.

        Raises:
            PolicyError: a picture is missing or has another size than the policy declares, or ``between`` is too short.
        """
        if self._session is None:
            self.reset(instruction, stream_seed(0, "serve", self._name))
        now = self._steps if step is None else step
        executed = self._executed if step is None else step - (self._steps - self._executed)
        sent, needed = len(between) + 1, min(self._served.spec.history_steps, executed)
        if sent < needed:
            what = f"the policy sees every observation; after {executed} actions it was sent {sent}, not {needed}"
            raise PolicyError("history", what)
        for back, earlier in zip(range(len(between), 0, -1), between, strict=True):
            self._past.append(self._observation(instruction, earlier, now - back))
        present = self._observation(instruction, seen, now)
        answer = self._served.act(replace(present, history=tuple(self._past)))
        self._past.append(present)
        self._executed = len(answer.actions)
        self._steps = now + self._executed
        return answer

    def _observation(self, instruction: str, seen: Seen, step: int) -> Observation:
        assert self._session is not None
        for camera in self._served.spec.cameras:
            expected = (camera.height_px, camera.width_px, 3)
            if camera.name not in seen.images:
                sent = ", ".join(seen.images) or "none"
                raise PolicyError("camera", f"the policy needs {camera.name}; sent were {sent}")
            found = np.asarray(seen.images[camera.name])
            if found.shape != expected or found.dtype != np.uint8:
                what = f"{camera.name} is {found.dtype} {found.shape}; the policy needs uint8 {expected}"
                raise PolicyError("camera", what)
        return Observation(
            session=self._session,
            step=step,
            instruction=instruction,
            state=np.asarray(seen.state, np.float64),
            endpose=None if seen.endpose is None else np.asarray(seen.endpose, np.float64),
            images={camera.name: np.asarray(seen.images[camera.name]) for camera in self._served.spec.cameras},
        )
