"""A policy from a function, and one trial of it on the fake simulator."""

import numpy as np

from evalkit.core.trial import TrialSpec
from evalkit.episode.decide import LocalDecider
from evalkit.episode.run_trial import run_trial
from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.sim.contract import Scene
from evalkit.sim.fake import FakeSimulator, FakeWorld

HORIZON = 40


class ChunkPolicy:
    """Gives what its function says; keeps what it was told."""

    def __init__(self, act, *, chunk_steps=10, drive="act", cameras=("head_camera",), action_type="qpos"):
        self.spec = PolicySpec(
            name="test",
            cameras=tuple(CameraSpec(name=name) for name in cameras),
            action_type=action_type,
            chunk_steps=chunk_steps,
            execute_steps=chunk_steps,
            needs_instruction=False,
            stateful=True,
            drive=drive,
        )
        self._act = act
        self.episodes, self.seen = [], []

    def reset(self, info):
        self.episodes.append(info)

    def act(self, observation):
        self.seen.append(observation)
        return self._act(observation)

    def close(self):
        pass


def hold(observation):
    return np.tile(observation.state, (10, 1))


def follow(observation):
    """Go where the instruction says."""
    actions = np.tile(observation.state, (10, 1))
    actions[:, 0] = float(observation.instruction.split()[4])
    return actions


def run(policy, seed=100000, world=None, execute_steps=10, action_type="qpos", sim=None, **options):
    world = world or FakeWorld()
    spec = TrialSpec(
        backend="b",
        task="click_bell",
        config="demo_clean",
        config_digest="c",
        seed=seed,
        instruction=f"move joint 0 to {world.goal_rad('click_bell', seed)} rad",
        instruction_split="seen",
        horizon_steps=HORIZON,
        action_type=action_type,
        execute_steps=execute_steps,
        policy="p",
        repeat=1,
    )
    scene = Scene(task="click_bell", config="demo_clean", settings={}, seed=seed, horizon_steps=HORIZON)
    return run_trial(sim or FakeSimulator(world), LocalDecider(policy), spec, scene, session="s-1", **options)
