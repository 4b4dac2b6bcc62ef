"""Does a policy keep the contract? One list of checks for every adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError
from evalkit.core.rng import stream
from evalkit.policy.chunk import GRIPPER_COLUMNS, check_chunk
from evalkit.policy.contract import (
    ACTION_DIMS,
    ActionChunk,
    BatchPolicy,
    EndingPolicy,
    EpisodeInfo,
    Observation,
    Policy,
    PolicySpec,
)

INSTRUCTIONS = ("Put the red block on the green block.", "Press the bell.", "Frobnicate the wugs gently!")
HORIZON_STEPS = 96


def example_episode(spec: PolicySpec, *, session: str, seed: int) -> EpisodeInfo:
    """A valid start of an episode, with a demonstration if the policy is handed one."""
    random = stream(seed, "conformance", "episode")
    demonstration = None
    if spec.drive == "demonstration":
        demonstration = random.uniform(0, 1, (HORIZON_STEPS, 14))
        if spec.action_type == "ee":
            demonstration = np.stack([_example_endpose(random, state) for state in demonstration])
    return EpisodeInfo(
        session=session,
        instruction=INSTRUCTIONS[seed % len(INSTRUCTIONS)],
        policy_seed=seed,
        horizon_steps=HORIZON_STEPS,
        demonstration=demonstration,
    )


def example_observations(spec: PolicySpec, *, session: str, seed: int, count: int = 2) -> list[Observation]:
    """Valid, random observations of one episode, ``spec.execute_steps`` apart; the first one without a history."""
    steps = [index * spec.execute_steps for index in range(count)]
    return [
        replace(
            _example_observation(spec, session, seed, step),
            history=tuple(
                _example_observation(spec, session, seed, earlier)
                for earlier in range(max(0, step - spec.history_steps + 1), step)
            ),
        )
        for step in steps
    ]


def _example_observation(spec: PolicySpec, session: str, seed: int, step: int) -> Observation:
    random = stream(seed, "conformance", "observation", step)
    state = random.uniform(-0.5, 1.5, 14)
    state[list(GRIPPER_COLUMNS["qpos"])] = random.uniform(0, 1, 2)
    images: dict[str, NDArray[np.uint8]] = {
        camera.name: random.integers(0, 256, (camera.height_px, camera.width_px, 3), np.uint8)
        for camera in spec.cameras
    }
    return Observation(
        session=session,
        step=step,
        instruction=INSTRUCTIONS[seed % len(INSTRUCTIONS)],
        state=state,
        endpose=_example_endpose(random, state),
        images=images,
    )


def _example_endpose(random: np.random.Generator, state: NDArray[np.float64]) -> NDArray[np.float64]:
    poses = random.uniform(0, 1, (2, 8))
    poses[:, 7] = state[list(GRIPPER_COLUMNS["qpos"])]
    poses[:, 3:7] /= np.linalg.norm(poses[:, 3:7], axis=1, keepdims=True)
    return poses.reshape(16)


def violations(policy: Policy) -> list[str]:
    """Run all checks that fit the policy's drive.

    Returns:
        One line for each broken rule; empty if the policy conforms.
    """
    found = _spec_violations(policy.spec)
    if policy.spec.action_type not in ACTION_DIMS:
        return found  # what its actions should look like, nobody knows
    if policy.spec.drive == "expert":
        return found + _refuses_to_act(policy)
    found += _output_violations(policy)
    if found:
        return found
    found += _repeat_violations(policy)
    if isinstance(policy, BatchPolicy):
        found += _batch_violations(policy)
    if isinstance(policy, EndingPolicy):
        found += _end_violations(policy)
    return found


def _spec_violations(spec: PolicySpec) -> list[str]:
    found = []
    if not 1 <= spec.execute_steps <= spec.chunk_steps:
        found.append(f"spec: execute_steps {spec.execute_steps} isn't within 1 to chunk_steps {spec.chunk_steps}")
    if spec.history_steps < 1:
        found.append(f"spec: history_steps {spec.history_steps} isn't 1 or more")
    names = [camera.name for camera in spec.cameras]
    if len(set(names)) != len(names):
        found.append(f"spec: a camera is listed twice: {names}")
    if spec.action_type not in ACTION_DIMS:
        found.append(f"spec: action_type {spec.action_type!r} isn't one of {', '.join(ACTION_DIMS)}")
    return found


def _refuses_to_act(policy: Policy) -> list[str]:
    policy.reset(example_episode(policy.spec, session="a", seed=1))
    try:
        policy.act(example_observations(policy.spec, session="a", seed=1, count=1)[0])
    except PolicyError:
        return []
    return ["act: an expert drive must refuse to act (PolicyError)"]


def _output_violations(policy: Policy) -> list[str]:
    """Shape, dtype, finiteness; inputs untouched; outputs owned by the caller."""
    spec = policy.spec
    dimension = ACTION_DIMS[spec.action_type]
    # A policy that drives its own loop decides itself how often it looks.
    fewest = 1 if spec.one_at_a_time else spec.chunk_steps
    expected = f"float64 ({f'{fewest} to ' * (fewest < spec.chunk_steps)}{spec.chunk_steps}, {dimension})"
    found = []
    policy.reset(example_episode(spec, session="a", seed=1))
    for observation in example_observations(spec, session="a", seed=1):
        state, images = observation.state.copy(), {name: image.copy() for name, image in observation.images.items()}
        chunk = policy.act(observation)
        fits = isinstance(chunk, np.ndarray) and chunk.dtype == np.float64 and chunk.shape[1:] == (dimension,)
        if not fits or not fewest <= len(chunk) <= spec.chunk_steps:
            found.append(f"act: returned {_describe(chunk)}, expected {expected}")
            continue
        try:
            check_chunk(chunk, spec)
        except PolicyError as error:
            found.append(f"act: {error}")
        if not np.array_equal(state, observation.state) or any(
            not np.array_equal(images[name], observation.images[name]) for name in images
        ):
            found.append("act: changed its observation")
        if np.shares_memory(chunk, observation.state):
            found.append("act: returned memory of its observation")
    return found


def _repeat_violations(policy: Policy) -> list[str]:
    """Reset forgets; sessions are kept apart; the same inputs give the same bits."""
    alone = _episode(policy, "a", 1)
    _episode(policy, "b", 2)
    found = []
    if not _equal(alone, _episode(policy, "a", 1)):
        found.append("reset: the same seed and observations gave other actions after an unrelated episode")
    if not _equal(alone, _episode(policy, "c", 1)):
        found.append("session: the session's name changed the actions")
    other = _episode(policy, "b", 2)
    spec = policy.spec
    if spec.one_at_a_time:
        return found + _one_at_a_time_violations(policy)
    policy.reset(example_episode(spec, session="a", seed=1))
    policy.reset(example_episode(spec, session="b", seed=2))
    pairs = zip(
        example_observations(spec, session="a", seed=1), example_observations(spec, session="b", seed=2), strict=True
    )
    mixed = [(policy.act(first), policy.act(second)) for first, second in pairs]
    if not _equal(alone, [first for first, _ in mixed]) or not _equal(other, [second for _, second in mixed]):
        found.append("session: two episodes at the same time changed each other's actions")
    return found


def _one_at_a_time_violations(policy: Policy) -> list[str]:
    """An observation of the episode before must be refused, not answered out of the new one's state."""
    policy.reset(example_episode(policy.spec, session="a", seed=1))
    policy.reset(example_episode(policy.spec, session="b", seed=2))
    try:
        policy.act(example_observations(policy.spec, session="a", seed=1, count=1)[0])
    except PolicyError:
        return []
    return ["session: holds one episode at a time, but answered an observation of the episode before"]


def _batch_violations(policy: BatchPolicy) -> list[str]:
    """Each row of a batch is bitwise what act gives alone, whatever the batch's size and order."""
    spec, found = policy.spec, []
    rows, alone = [], []
    for seed in range(1, 12):
        session = f"row{seed}"
        policy.reset(example_episode(spec, session=session, seed=seed))
        rows.append(example_observations(spec, session=session, seed=seed, count=1)[0])
        alone.append(policy.act(rows[-1]))
    for order in (range(len(rows)), range(len(rows) - 1, -1, -1), range(1, 4), (0, 0)):
        for seed in range(1, 12):
            policy.reset(example_episode(spec, session=f"row{seed}", seed=seed))
        picked = [rows[index] for index in order]
        if spec.stateful and len(set(order)) < len(picked):
            continue
        together = policy.act_batch([replace(row) for row in picked])
        if len(together) != len(picked):
            found.append(f"act_batch: {len(picked)} observations gave {len(together)} chunks")
        elif not _equal([alone[index] for index in order], together):
            found.append(f"act_batch: a batch of {len(picked)} gave other actions than one by one")
    return found


def _end_violations(policy: EndingPolicy) -> list[str]:
    """The end of one episode may be told with or without a verdict, and is nothing to another."""
    alone = _episode(policy, "a", 1)
    for success in (True, False, None):
        policy.reset(example_episode(policy.spec, session="b", seed=2))
        try:
            policy.end("b", success)
        except Exception as error:  # adapters are other people's code
            return [f"end: raised {type(error).__name__}: {error}"]
    return [] if _equal(alone, _episode(policy, "a", 1)) else ["end: an episode's end changed the next one's actions"]


def _episode(policy: Policy, session: str, seed: int) -> list[ActionChunk]:
    policy.reset(example_episode(policy.spec, session=session, seed=seed))
    return [policy.act(row).copy() for row in example_observations(policy.spec, session=session, seed=seed)]


def _equal(first: Sequence[ActionChunk], second: Sequence[ActionChunk]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    return type(value).__name__
