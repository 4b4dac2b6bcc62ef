"""A policy that knows what the expert did at the golden moments, and ways to mix up what it is sent and answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.policy.golden import golden_moments

CAMERAS = tuple(CameraSpec(name=name) for name in ("head_camera", "left_camera", "right_camera"))


class Imitator:
    """The expert's next actions where it sees a golden moment as it is; elsewhere it holds still."""

    def __init__(self, action_type="qpos"):
        self.spec = PolicySpec(
            name="imitator", cameras=CAMERAS, action_type=action_type, chunk_steps=16, execute_steps=8,
            needs_instruction=False, stateful=False,
        )  # fmt: skip
        self.moments = golden_moments(self.spec)

    def reset(self, info):
        pass

    def act(self, observation):
        for moment in self.moments:
            seen = moment.observation
            if (
                np.array_equal(seen.state, observation.state)
                and np.array_equal(seen.endpose, observation.endpose)
                and all(np.array_equal(seen.images[name], image) for name, image in observation.images.items())
            ):
                return moment.then(self.spec.action_type).copy()
        qpos = self.spec.action_type == "qpos"
        chunk = np.tile(observation.state if qpos else observation.endpose, (16, 1))
        grippers = [6, 13] if qpos else [7, 15]
        chunk[:, grippers] = np.clip(chunk[:, grippers], 0, 1)
        return chunk

    def close(self):
        pass


class MixedUp:
    """A policy that is sent, or answers, something else than it should."""

    def __init__(self, policy, *, sent=None, answered=None):
        self.spec, self._policy = policy.spec, policy
        self._sent, self._answered = sent or (lambda row: row), answered or (lambda chunk, row: chunk)

    def reset(self, info):
        self._policy.reset(info)

    def act(self, observation):
        sent = self._sent(replace(observation, state=observation.state.copy()))
        return np.array(self._answered(np.array(self._policy.act(sent)), observation))

    def close(self):
        pass


def swapped_colours(row):
    return replace(row, images={name: image[..., ::-1] for name, image in row.images.items()})


def exchanged_wrists(row):
    images = dict(row.images)
    images["left_camera"], images["right_camera"] = images["right_camera"], images["left_camera"]
    return replace(row, images=images)


def state_with(change):
    def sent(row):
        return replace(row, state=change(row.state.copy()))

    return sent


def turned_grippers(state):
    state[[6, 13]] = 1 - state[[6, 13]]
    return state


def radians_taken_for_degrees(state):
    arms = [*range(6), *range(7, 13)]
    state[arms] = np.deg2rad(state[arms])
    return state


def exchanged_arms(state):
    return np.concatenate([state[7:], state[:7]])


def xyzw_poses(row):
    pose = row.endpose.copy()
    for start in (3, 11):
        pose[start : start + 4] = np.roll(pose[start : start + 4], 1)
    return replace(row, endpose=pose)
