"""LingBot-VA behind its websocket server: it wants to see every few actions of a chunk before it plans the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec
from evalkit.policy.conversion import References
from evalkit.policy.converted import Episodes
from evalkit.policy.fields import Moment
from evalkit.policy.profile import Profile, load_profile
from evalkit.policy.settings import PolicySettings, number
from evalkit.policy.weight_files import find_weights
from evalkit.policy.wire.connection import CALL_S, CONNECT_S
from evalkit.policy.wire.openpi import OpenpiChannel

NEEDS_CHECKPOINT = False
LOOKS_PER_FRAME = 4
"""The server's cache takes so many observations of each frame of a chunk."""
INFERENCE_MODES = ("torch", "flashattn")
_REQUIRED = ("url", "serves")
_OPTIONAL = ("profile", "video_guidance_scale", "action_guidance_scale", "checkpoint", "connect_s", "call_s")


class LingBotPolicy:
    """Speaks as the published client does: reset, first observation, chunk, what was seen, chunk, ...

    Args:
        profile: observations and the meaning of actions.
        channel: the server; closed with it.
        guidance: sent with every request for a chunk.
    """

    def __init__(self, profile: Profile, channel: OpenpiChannel, guidance: Mapping[str, float]) -> None:
        self.spec = profile.spec
        self._profile, self._channel, self._guidance = profile, channel, dict(guidance)
        self._episodes = Episodes(profile.spec)
        self._first: dict[str, Any] | None = None
        self._start: NDArray[np.float64] | None = None
        self._waiting: list[NDArray[np.float64]] = []
        self._chunk: NDArray[np.float64] | None = None
        self._seen: list[dict[str, Any]] = []

    def reset(self, info: EpisodeInfo) -> None:
        """Empty the server's cache and tell it the instruction."""
        self._episodes.start(info)
        self._first, self._start, self._chunk, self._waiting, self._seen = None, None, None, [], []
        self._channel.call({"reset": True, "prompt": info.instruction, "save_visualization": False})

    def act(self, observation: Observation) -> ActionChunk:
        """The next actions before the server wants to see: (actions per look, 16)."""
        episode = self._episodes.current(observation)
        if observation.endpose is None:
            raise PolicyError("endpose", f"policy {self.spec.name} needs end effector poses, which weren't delivered")
        if self._start is None:
            self._start = np.array(observation.endpose, np.float64)
        references = References(first=self._start, current=np.asarray(observation.endpose, np.float64))
        moment = Moment(observation=observation, references=references, seed=episode.seed, call=episode.calls)
        shown = {key: field.value(moment) for key, field in self._profile.request.items()}
        episode.calls += 1
        if self._chunk is not None:
            self._seen.append(shown)
        if not self._waiting:
            self._plan(shown, observation.instruction)
        return self._profile.actions.decode(self._waiting.pop(0), references)

    def end(self, session: str, success: bool | None) -> None:
        """Forget the episode; the server has no such message and empties its cache at the next reset."""
        if self._episodes.end(session):
            self._first, self._start, self._chunk, self._waiting, self._seen = None, None, None, [], []

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def _plan(self, shown: dict[str, Any], instruction: str) -> None:
        """Tell the server what was seen of the last chunk, and get the next one."""
        first_chunk = self._chunk is None
        if self._chunk is None:
            self._first = shown
        else:
            told = {"obs": self._seen, "compute_kv_cache": True, "imagine": False, "save_visualization": False}
            self._channel.call({**told, "state": self._chunk})
            self._seen = []
        request = {"obs": self._first, "prompt": instruction, "save_visualization": False, **self._guidance}
        answer = self._channel.call(request)
        chunk = np.asarray(answer.get(self._profile.answer_key, ()), np.float64)
        width, name = self._profile.actions.width, self.spec.name
        if chunk.ndim != 3 or chunk.shape[0] != width or chunk.shape[2] % LOOKS_PER_FRAME or not chunk.size:
            what = f"policy {name} returned {self._profile.answer_key} of shape {chunk.shape}"
            raise PolicyError("action_shape", f"{what}; expected ({width}, frames, a multiple of {LOOKS_PER_FRAME})")
        per_look = chunk.shape[2] // LOOKS_PER_FRAME
        if per_look > self.spec.chunk_steps:
            what = f"policy {name} takes {per_look} actions between two looks; its profile says {self.spec.chunk_steps}"
            raise PolicyError("action_shape", what)
        # The first frame of the first chunk is the present: the published client leaves it out.
        actions = chunk[:, 1 if first_chunk else 0 :].reshape(width, -1).T
        self._waiting = [actions[start : start + per_look] for start in range(0, len(actions), per_look)]
        self._chunk = chunk
        if not self._waiting:
            raise PolicyError(
                "action_shape", f"policy {name} returned a first chunk of one frame, which has no actions"
            )


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> LingBotPolicy:
    """The policy; connects to its server.

    Raises:
        UserError: no policy file, or something wrong with it or with the checkpoint it names.
        PolicyLostError: no server there.
    """
    if settings is None or checkpoint is not None:
        raise UserError("policy lingbot_va runs elsewhere: describe its server in a policy file, give that to --policy")
    profile = _profile(settings)
    _check_checkpoint(settings)
    options = settings.options
    channel = OpenpiChannel(
        options["url"], connect_s=number(options, "connect_s", CONNECT_S), call_s=number(options, "call_s", CALL_S)
    )
    channel.open()
    return LingBotPolicy(profile, channel, _guidance(settings))


def spec(settings: PolicySettings) -> PolicySpec:
    """The policy's declaration: its profile's."""
    return _profile(settings).spec


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions; ``serves`` stands for the weights unless the checkpoint is named."""
    return {
        "serves": settings.options["serves"],
        "profile": _profile(settings).content,
        "guidance": _guidance(settings),
        "checkpoint": _check_checkpoint(settings),
    }


def _profile(settings: PolicySettings) -> Profile:
    settings.check(_REQUIRED, _OPTIONAL)
    return load_profile(settings.options.get("profile", "lingbot_va"), name=settings.name, folder=settings.folder)


def _guidance(settings: PolicySettings) -> dict[str, float]:
    return {key: number(settings.options, key, 5.0) for key in ("video_guidance_scale", "action_guidance_scale")}


def _check_checkpoint(settings: PolicySettings) -> str | None:
    """Digest of the checkpoint the server runs, if it is named.

    Raises:
        UserError: it is still in the attention mode of training, in which the server can't run it.
    """
    path = settings.path("checkpoint")
    if path is None:
        return None
    found = find_weights(path)
    config = found.folder / "config.json"
    if not config.is_file():
        raise UserError(f"{found.folder} has no config.json beside its weights")
    mode = json.loads(config.read_text()).get("attn_mode")
    if mode not in INFERENCE_MODES:
        what = f"{config} has attn_mode {mode!r}, which is for training"
        raise UserError(f"{what}: set it to {' or '.join(INFERENCE_MODES)} in the copy that the server loads")
    return found.digest()
