"""A policy behind a channel: its requests are made, and its answers understood, as a profile says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec
from evalkit.policy.conversion import References
from evalkit.policy.fields import Moment, robot_vector
from evalkit.policy.profile import Profile

KEPT_EPISODES = 10_000
"""Episodes a policy remembers the start of; far more than can run at the same time."""


class Channel(Protocol):
    """A way to a policy that speaks in messages.

    Failures of the way are ``PolicyLostError``; what the policy itself reports is ``PolicyError``.
    """

    def reset(self, info: EpisodeInfo) -> None:
        """Tell the start of an episode."""
        ...

    def infer(self, session: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """One request, one answer. Values are numbers, texts, numpy arrays, lists and mappings of them."""
        ...

    def end(self, session: str, success: bool | None) -> None:
        """Tell the end of an episode, where the way knows such a message."""
        ...

    def close(self) -> None:
        """End the connection or process."""
        ...


@dataclass
class _Episode:
    seed: int
    first: NDArray[np.float64] | None = None
    calls: int = 0
    sent: int = -1
    """Step of the last observation that was sent, for servers that are sent every one."""


class Episodes:
    """Which episodes a policy has been told of.

    Args:
        spec: the policy's declaration.
    """

    def __init__(self, spec: PolicySpec) -> None:
        self._spec = spec
        self._known: dict[str, _Episode] = {}

    def start(self, info: EpisodeInfo) -> None:
        """An episode begins; of a policy that holds one at a time, it ends the one before."""
        if self._spec.one_at_a_time:
            self._known.clear()
        self._known.pop(info.session, None)
        self._known[info.session] = _Episode(seed=info.policy_seed)
        if len(self._known) > KEPT_EPISODES:
            del self._known[next(iter(self._known))]

    def end(self, session: str) -> bool:
        """An episode is over. Returns whether it was running."""
        return self._known.pop(session, None) is not None

    def current(self, observation: Observation) -> _Episode:
        """The episode of an observation.

        Raises:
            PolicyError: it was never started, or another one took its place.
        """
        episode = self._known.get(observation.session)
        if episode is None:
            what = (
                f"policy {self._spec.name} got an observation of session {observation.session!r}, which isn't running"
            )
            one = ": it holds one episode at a time, run it with --workers 1" if self._spec.one_at_a_time else ""
            raise PolicyError("session", what + one)
        return episode


class ConvertedPolicy:
    """Implements ``evalkit.policy.contract.Policy``.

    Args:
        profile: requests and answers.
        channel: the way to the policy; closed with it.
    """

    def __init__(self, profile: Profile, channel: Channel) -> None:
        self.spec = profile.spec
        self._profile, self._channel = profile, channel
        self._episodes = Episodes(profile.spec)

    def reset(self, info: EpisodeInfo) -> None:
        """Start an episode at the other end, too."""
        self._episodes.start(info)
        self._channel.reset(info)

    def act(self, observation: Observation) -> ActionChunk:
        """Ask for actions. Returns (chunk_steps or fewer, 14 or 16).

        Raises:
            PolicyError: unknown session, or an answer that isn't what the profile says.
        """
        episode = self._episodes.current(observation)
        state = robot_vector(observation, self.spec.action_type)
        if episode.first is None:
            episode.first = np.array(state, np.float64)
        references = References(first=episode.first, current=np.asarray(state, np.float64))
        moment = Moment(observation=observation, references=references, seed=episode.seed, call=episode.calls)
        request = {key: field.value(moment) for key, field in self._profile.request.items()}
        answer = self._channel.infer(observation.session, request)
        episode.calls += 1
        return self._profile.actions.decode(self._returned(answer), references)[: self.spec.chunk_steps].copy()

    def end(self, session: str, success: bool | None) -> None:
        """Forget an episode, and tell the other end where the way knows such a message."""
        if self._episodes.end(session):
            self._channel.end(session, success)

    def close(self) -> None:
        """End the channel."""
        self._channel.close()

    def _returned(self, answer: Mapping[str, Any]) -> NDArray[np.float64]:
        key, name = self._profile.answer_key, self.spec.name
        if key not in answer:
            there = ", ".join(sorted(map(str, answer))) or "nothing"
            raise PolicyError("answer", f"policy {name} answered without {key!r}; its answer has {there}")
        actions = as_chunk(answer[key], name)
        if len(actions) < self.spec.chunk_steps and not self.spec.one_at_a_time:
            what = (
                f"policy {name} returned {len(actions)} actions; its profile says chunk_steps: {self.spec.chunk_steps}"
            )
            raise PolicyError("action_shape", what)
        return actions


def as_chunk(value: Any, name: str) -> NDArray[np.float64]:
    """Actions as (steps, numbers).

    Accepted: (steps, numbers), (1, steps, numbers), one action (numbers,), and lists of them.

    Raises:
        PolicyError: anything else, or no actions at all.
    """
    try:
        actions = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise PolicyError(
            "action_shape", f"policy {name} returned {type(value).__name__}, not actions: {error}"
        ) from error
    if actions.ndim == 3 and actions.shape[0] == 1:
        actions = actions[0]
    if actions.ndim == 1 and actions.size:
        actions = actions[None]
    if actions.ndim != 2 or not actions.size:
        what = f"policy {name} returned actions of shape {actions.shape}; expected (steps, numbers)"
        raise PolicyError("action_shape", what)
    return actions
