"""Policies and little worlds for the pool's tests. Importable by Ray's workers."""

import dataclasses
import os
import signal
import time
from pathlib import Path

import numpy as np

from evalkit.core.errors import SimulatorError
from evalkit.core.rng import stream_seed
from evalkit.core.tasks import STEP_LIMITS
from evalkit.plan.plan import PlanSettings, make_plan
from evalkit.plan.seed_files import SeedFiles
from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.pool.drive import find_seeds, run_trials
from evalkit.pool.observer import Observer
from evalkit.pool.seed_work import SeedNeed
from evalkit.protocol.config import load_config
from evalkit.sim.fake import FakeSimulator
from evalkit.sim.fake.process import FakeProcessSimulator
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.store.info import ConfigInfo, PolicyInfo, RunInfo
from evalkit.store.run import Run

CLEAN = load_config("demo_clean")
TASK = "click_bell"
HORIZON = STEP_LIMITS[TASK]


def policy_seed(seed, repeat=0):
    return stream_seed(seed, "policy", TASK, repeat)


class Queue50:
    """Plans 50 actions at reset, plays 10 a call. Succeeds only where its queue is the session's own and fresh.

    Every third scene it aims beside the goal, so that a run has both outcomes.
    """

    spec = PolicySpec(
        name="queue",
        cameras=(CameraSpec(name="head_camera"),),
        action_type="qpos",
        chunk_steps=10,
        execute_steps=10,
        needs_instruction=True,
        stateful=True,
    )

    def __init__(self, *, resets=True, misses=False):
        self._resets, self._misses = resets, misses
        self._queues = {}

    def reset(self, info):
        name = info.session if self._resets else "the only one"
        if name not in self._queues or self._resets:
            goal = float(info.instruction.split()[4])
            miss = 0.3 if self._misses and info.policy_seed % 3 == 0 else 0.0
            self._queues[name] = [np.array([goal + miss] + [0.0] * 5 + [1.0] + [0.0] * 6 + [1.0])] * 50

    def act(self, observation):
        name = observation.session if self._resets else "the only one"
        queue = self._queues[name]
        chunk = queue[observation.step : observation.step + 10] or [observation.state] * 10
        return np.stack(chunk)

    def act_batch(self, observations):
        return [self.act(observation) for observation in observations]

    def close(self):
        pass


class Troubled(Queue50):
    """Does something bad in one scene.

    Args:
        what: ``"nan"``, ``"crash"`` or ``"hang"``.
        seed: the scene.
        times: how often, over all processes; None for always.
        memory: folder that counts.
    """

    def __init__(self, what, seed, times=None, memory=None):
        super().__init__()
        self._what, self._times, self._memory = what, times, memory
        self._target = policy_seed(seed)
        self._bad = set()

    def reset(self, info):
        super().reset(info)
        if info.policy_seed == self._target:
            self._bad.add(info.session)

    def act(self, observation):
        chunk = super().act(observation)
        if observation.session in self._bad and self._strikes():
            if self._what == "nan":
                chunk[2, 3] = np.nan
            if self._what == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
                sleep_for_ever()  # Ray prints a trace before the process ends
            if self._what == "hang":
                sleep_for_ever()
        return chunk

    def _strikes(self):
        if self._times is None:
            return True
        struck = len(list(Path(self._memory).iterdir()))
        if struck >= self._times:
            return False
        (Path(self._memory) / str(struck)).touch()
        return True


class WrongWidth(Queue50):
    def act(self, observation):
        return np.zeros((8, 16))


def sleep_for_ever():
    while True:
        time.sleep(3600)


class DyingSimulator(FakeSimulator):
    """Takes its own worker process with it in one scene, so often over all processes."""

    def __init__(self, seed, times, memory):
        super().__init__()
        self._seed, self._times, self._memory = seed, times, Path(memory)

    def apply(self, actions, action_type):
        struck = len(list(self._memory.iterdir()))
        if self._scene.seed == self._seed and struck < self._times:
            (self._memory / str(struck)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().apply(actions, action_type)


@dataclasses.dataclass(frozen=True)
class Make:
    """A factory with its arguments, for travelling."""

    kind: type
    arguments: tuple = ()
    options: dict = dataclasses.field(default_factory=dict)

    def __call__(self, worker_name=None):
        return self.kind(*self.arguments, **self.options)


def fake(world):
    return Make(FakeSimulator, (world,))


def fake_process(world, deadline_s=30.0):
    return Make(FakeProcessSimulator, (world, deadline_s))


class Notes(Observer):
    """Keeps what it hears."""

    def __init__(self):
        self.incidents, self.trials = [], []

    def incident(self, title, failure, attempt):
        self.incidents.append((title, failure, attempt))

    def trial(self, record):
        self.trials.append(record)


def seeds_of(crew, folder, count, tasks=(TASK,), observer=None):
    needs = [SeedNeed(task=task, config=CLEAN, count=count) for task in tasks]
    with SeedFiles(folder, "x", travelling=folder / "none") as files:
        return find_seeds(crew, needs, files, observer or Notes())


def open_run(folder, seeds, count, tasks=(TASK,), policy="p"):
    settings = PlanSettings(
        backend=FINGERPRINT.digest, policy=policy, action_type="qpos", execute_steps=10, trials_per_task=count
    )
    info_of_policy = PolicyInfo(
        adapter="queue",
        digest=policy,
        checkpoint=None,
        checkpoint_digest=None,
        step=None,
        execute_steps=10,
        action_type="qpos",
        device="cpu",
        privileged=False,
    )
    info = RunInfo(
        run_id="r",
        created_at="2026-01-01T00:00:00+00:00",
        evalkit_version="0",
        policy=info_of_policy,
        card=None,
        configs={CLEAN.name: ConfigInfo(digest=CLEAN.digest, split=CLEAN.instruction_split, label="?2c")},
        tasks=tasks,
        trials_per_task=count,
        backend=dataclasses.asdict(FINGERPRINT),
        seed_lists={f"{task}/{config}": found.digest for (task, config), found in seeds.items()},
    )
    return Run.create(folder, info, make_plan(settings, tasks, [CLEAN], seeds))


def trials(crew, run, observer=None, remaining=None, **options):
    specs = run.remaining() if remaining is None else remaining
    try:
        return run_trials(crew, run, specs, {CLEAN.name: CLEAN}, observer or Notes(), **options)
    finally:
        run.close()


def essence(run):
    """What must not depend on how a run was run."""
    return {
        key: (r.outcome, r.steps, r.policy_calls, r.success_step, r.planner_failures, r.state_digest)
        for key, r in run.records().items()
    }


class Broken(FakeSimulator):
    """Not even a scene."""

    def reset(self, scene):
        raise SimulatorError("setup", "no Vulkan device")
