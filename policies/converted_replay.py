"""Plays the expert's actions of the trial's own scene back through a profile's conversions. Privileged.

Every action goes into the policy's representation, as float32, and back. What ``replay`` solves and this doesn't, the
conversions lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.contract import ACTION_DIMS, ActionChunk, EpisodeInfo, Observation, PolicySpec
from evalkit.policy.conversion import Conversion, References
from evalkit.policy.fields import robot_vector
from evalkit.policy.profile import Profile, load_profile
from evalkit.policy.settings import PolicySettings

NEEDS_CHECKPOINT = False
CHUNK_STEPS = 32
_REQUIRED = ("profile",)
_OPTIONAL = ("answers",)


class ConvertedReplayPolicy:
    """Returns the demonstration's next actions, converted there and back; after its end the last one.

    Args:
        spec: what the policy gives; it looks at nothing but the robot's state.
        conversion: between RoboTwin's numbers and a policy's.
    """

    def __init__(self, spec: PolicySpec, conversion: Conversion) -> None:
        self.spec = spec
        self._conversion = conversion
        self._demonstrations: dict[str, ActionChunk] = {}
        self._first: dict[str, NDArray[np.float64]] = {}

    def reset(self, info: EpisodeInfo) -> None:
        """Take the demonstration of a new episode.

        Raises:
            PolicyError: there is none, or it isn't one of this kind of actions.
        """
        dimension = ACTION_DIMS[self.spec.action_type]
        shape = None if info.demonstration is None else info.demonstration.shape
        if shape is None or len(shape) != 2 or not shape[0] or shape[1] != dimension:
            what = f"demonstration of session {info.session!r} has shape {shape}, expected (steps, {dimension})"
            raise PolicyError("demonstration", what)
        self._demonstrations[info.session] = np.array(info.demonstration, np.float64)
        self._first.pop(info.session, None)

    def act(self, observation: Observation) -> ActionChunk:
        """(32, 14) or (32, 16): the demonstration from the present step on.

        Raises:
            PolicyError: the session was never reset.
        """
        actions = self._demonstrations.get(observation.session)
        if actions is None:
            raise PolicyError(
                "session", f"policy {self.spec.name} got session {observation.session!r} before its reset"
            )
        state = np.array(robot_vector(observation, self.spec.action_type), np.float64)
        references = References(first=self._first.setdefault(observation.session, state), current=state)
        steps = np.minimum(np.arange(observation.step, observation.step + CHUNK_STEPS), len(actions) - 1)
        encoded = self._conversion.encode(actions[steps], references).astype(np.float32)
        return self._conversion.decode(encoded.astype(np.float64), references)

    def end(self, session: str, success: bool | None) -> None:
        """Forget the episode's demonstration."""
        self._demonstrations.pop(session, None)
        self._first.pop(session, None)

    def close(self) -> None:
        """Forget all demonstrations."""
        self._demonstrations.clear()
        self._first.clear()


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> ConvertedReplayPolicy:
    """The policy; ``device`` doesn't matter.

    Raises:
        UserError: no policy file, or something wrong with it.
    """
    if settings is None or checkpoint is not None:
        raise UserError("policy converted_replay needs a policy file that names the profile: --policy FILE.yaml")
    return ConvertedReplayPolicy(spec(settings), _profile(settings).actions)


def spec(settings: PolicySettings) -> PolicySpec:
    """The declaration: the profile's kind of actions, without its cameras."""
    return replace(
        _profile(settings).spec,
        cameras=(),
        chunk_steps=CHUNK_STEPS,
        execute_steps=CHUNK_STEPS,
        needs_instruction=False,
        stateful=True,
        one_at_a_time=False,
        drive="demonstration",
    )


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions: the profile."""
    return {"profile": _profile(settings).content}


def _profile(settings: PolicySettings) -> Profile:
    settings.check(_REQUIRED, _OPTIONAL)
    options = settings.options
    return load_profile(options["profile"], name=settings.name, folder=settings.folder, answers=options.get("answers"))
