"""Mix-ups that turn 90 % into 0 %, tried one by one: which of them would bring a policy's actions to a reference?

A mix-up of what a policy is sent is undone in its observations, one of what it answers in its actions. If the actions
then come much nearer to what they should be, that is what is off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalkit.core.trial import ActionType
from evalkit.policy.chunk import GRIPPER_COLUMNS
from evalkit.policy.conformance import example_episode
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, Policy, PolicySpec
from evalkit.policy.rotations import one_sign

Array = NDArray[np.float64]
QPOS_ARMS = [column for column in range(14) if column not in GRIPPER_COLUMNS["qpos"]]
NEARER = 0.5
"""A mix-up is suspected if undoing it leaves at most this share of the distance,"""
MUCH_NEARER = 0.2
"""and all but certain at this one."""
NEAR = 0.02
"""Mean distance (rad, m, share of a gripper's way) of a policy that does what the expert did, more or less."""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A mix-up that would explain a policy's actions."""

    what: str
    remedy: str
    before: float
    """Mean distance to the reference."""
    after: float
    """The same with the mix-up undone."""

    @property
    def certain(self) -> bool:
        """Whether hardly anything else explains it."""
        return self.after <= MUCH_NEARER * self.before

    def __str__(self) -> str:
        return f"{self.what} would bring it from {self.before:.2g} to {self.after:.2g}: {self.remedy}"


def distance(chunks: Sequence[ActionChunk], references: Sequence[Array], action_type: str) -> float:
    """Mean over moments of the mean absolute difference of the actions both have."""
    found = []
    for chunk, reference in zip(chunks, references, strict=True):
        rows = min(len(chunk), len(reference))
        ours, theirs = one_sign(chunk[:rows], action_type), one_sign(reference[:rows], action_type)
        found.append(float(np.abs(ours - theirs).mean()))
    return float(np.mean(found))


def suspects(
    policy: Policy,
    rows: Sequence[Observation],
    chunks: Sequence[ActionChunk],
    references: Sequence[Array],
    near: float = NEAR,
) -> list[Suspect]:
    """Mix-ups that would explain the distance between a policy's actions and a reference, the likeliest first.

    Args:
        policy: asked again for every mix-up of observations.
        rows: what it was shown.
        chunks: what it answered.
        references: what it should have answered, (steps, 14 or 16) each.
        near: mean distance at which nothing is suspected.
    """
    kind = policy.spec.action_type
    before = distance(chunks, references, kind)
    if before <= near:
        return []
    found = []
    for name, (remedy, undo_action) in _ACTIONS[kind].items():
        undone = [undo_action(np.array(chunk), row) for chunk, row in zip(chunks, rows, strict=True)]
        found.append(Suspect(what=name, remedy=remedy, before=before, after=distance(undone, references, kind)))
    for name, (remedy, undo_seen) in _OBSERVATIONS.items():
        changed = [undo_seen(row) for row in rows]
        if all(_same(one, other) for one, other in zip(changed, rows, strict=True)):
            continue
        answers = ask(policy, changed)
        if answers is not None:
            found.append(Suspect(what=name, remedy=remedy, before=before, after=distance(answers, references, kind)))
    return sorted((item for item in found if item.after <= NEARER * before), key=lambda item: item.after)


def episode_of(spec: PolicySpec, row: Observation) -> EpisodeInfo:
    """The start of an episode in which a policy is shown one observation."""
    return replace(example_episode(spec, session=row.session, seed=7), instruction=row.instruction)


def ask(policy: Policy, rows: Sequence[Observation]) -> list[ActionChunk] | None:
    """The policy's answers, each in an episode of its own; None if it raises."""
    answers = []
    for row in rows:
        try:
            policy.reset(episode_of(policy.spec, row))
            answers.append(np.array(policy.act(row), np.float64))
        except Exception:  # adapters are other people's code; what it refuses explains nothing
            return None
    return answers


def _same(one: Observation, other: Observation) -> bool:
    poses = one.endpose is other.endpose or np.array_equal(np.asarray(one.endpose), np.asarray(other.endpose))
    pictures = all(np.array_equal(one.images[name], other.images[name]) for name in one.images)
    return np.array_equal(one.state, other.state) and poses and pictures


def _turn_grippers(kind: ActionType) -> Callable[[Array, Observation], Array]:
    def undo(chunk: Array, row: Observation) -> Array:
        columns = list(GRIPPER_COLUMNS[kind])
        chunk[:, columns] = 1 - chunk[:, columns]
        return chunk

    return undo


def _arms(size: int) -> Callable[[Array, Observation], Array]:
    return lambda chunk, row: np.concatenate([chunk[:, size:], chunk[:, :size]], axis=1)


def _radians(chunk: Array, row: Observation) -> Array:
    chunk[:, QPOS_ARMS] = np.deg2rad(chunk[:, QPOS_ARMS])
    return chunk


def _arms_first(chunk: Array, row: Observation) -> Array:
    return chunk[:, [*range(6), 12, *range(6, 12), 13]]


def _absolute(chunk: Array, row: Observation) -> Array:
    chunk[:, QPOS_ARMS] += row.state[QPOS_ARMS]
    return chunk


def _absolute_places(chunk: Array, row: Observation) -> Array:
    if row.endpose is not None:
        places = [0, 1, 2, 8, 9, 10]
        chunk[:, places] += row.endpose[places]
    return chunk


def _wxyz(chunk: Array, row: Observation) -> Array:
    for start in (3, 11):
        chunk[:, start : start + 4] = np.roll(chunk[:, start : start + 4], 1, axis=1)
    return chunk


def _xyzw(chunk: Array, row: Observation) -> Array:
    for start in (3, 11):
        chunk[:, start : start + 4] = np.roll(chunk[:, start : start + 4], -1, axis=1)
    return chunk


def _colours(row: Observation) -> Observation:
    return replace(row, images={name: np.ascontiguousarray(image[..., ::-1]) for name, image in row.images.items()})


def _wrists(row: Observation) -> Observation:
    if not {"left_camera", "right_camera"} <= set(row.images):
        return row
    images = dict(row.images)
    images["left_camera"], images["right_camera"] = images["right_camera"], images["left_camera"]
    return replace(row, images=images)


def _state(change: Callable[[Array], None]) -> Callable[[Observation], Observation]:
    def undo(row: Observation) -> Observation:
        state = row.state.copy()
        change(state)
        return replace(row, state=state)

    return undo


def _state_grippers(state: Array) -> None:
    state[[6, 13]] = 1 - state[[6, 13]]


def _state_degrees(state: Array) -> None:
    state[QPOS_ARMS] = np.rad2deg(state[QPOS_ARMS])


def _state_arms(state: Array) -> None:
    state[:] = np.concatenate([state[7:], state[:7]])


def _seen_xyzw(row: Observation) -> Observation:
    if row.endpose is None:
        return row
    return replace(row, endpose=_xyzw(row.endpose[None].copy(), row)[0])


_GRIPPER = "look at the profile's gripper step"
_ACTIONS: Mapping[str, Mapping[str, tuple[str, Callable[[Array, Observation], Array]]]] = {
    "qpos": {
        "grippers turned round in its actions": (_GRIPPER, _turn_grippers("qpos")),
        "left and right arm exchanged in its actions": ("order: right_arm_first", _arms(7)),
        "degrees made radians in its actions": ("joints: degrees", _radians),
        "grippers taken from the end of its actions": ("order: grippers_last", _arms_first),
        "its actions added to the state": ("relative: {to: current, ...}", _absolute),
    },
    "ee": {
        "grippers turned round in its actions": (_GRIPPER, _turn_grippers("ee")),
        "left and right arm exchanged in its actions": ("order: right_arm_first", _arms(8)),
        "quaternions taken as xyzw in its actions": ("rotation: quaternion_xyzw", _wxyz),
        "quaternions taken as wxyz in its actions": ("rotation: quaternion_wxyz", _xyzw),
        "its positions added to the pose": ("relative: {to: current, ...}", _absolute_places),
    },
}
"""Action type -> what to undo in the actions, the remedy, how."""
_OBSERVATIONS: Mapping[str, tuple[str, Callable[[Observation], Observation]]] = {
    "red and blue exchanged in its pictures": ("colour: bgr or rgb", _colours),
    "left and right wrist camera exchanged": ("look at the request's cameras", _wrists),
    "grippers turned round in its state": ("look at the gripper step of the request", _state(_state_grippers)),
    "degrees in its state": ("joints: degrees in the request", _state(_state_degrees)),
    "left and right arm exchanged in its state": ("order: right_arm_first in the request", _state(_state_arms)),
    "quaternions of its state in the order xyzw": ("rotation: quaternion_xyzw in the request", _seen_xyzw),
}
