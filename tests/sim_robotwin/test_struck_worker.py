"""RoboTwin's process is struck in the middle of a chunk of actions: the failure is told by its kind, the same trial
tried again ends as if nothing had happened, and nothing of the struck process stays."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from robotwin_scenes import scene

from evalkit.core.trial import TrialSpec
from evalkit.episode.decide import LocalDecider
from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.pool.jobs import Failed, Finished, TrialJob
from evalkit.pool.worker import Worker
from evalkit.sim.robotwin.factory import find_assets, find_install, find_renderer
from evalkit.sim.robotwin.host import REQUEST_LIMIT_S, RoboTwinSimulator
from evalkit.sim.robotwin.layout import RenderSettings

pytestmark = pytest.mark.sim
CHUNK_STEPS = 24
STRIKES_AT_STEP = CHUNK_STEPS
HANGS_AFTER_S = 3.0
INTO_THE_CHUNK_S = 0.1
"""A chunk takes five times as long at least."""


def write_into_its_answers(sim):
    """What a library that prints to the wrong descriptor does."""
    pipe = os.stat(sim._process.stdout.fileno()).st_ino
    for path in Path(f"/proc/{sim.pid}/fd").iterdir():
        if os.stat(path).st_ino == pipe:
            path.write_bytes(b"[Warning] PhysX: invalid argument\n" * 3)
            return
    raise AssertionError("the worker has no end of that pipe")


STRIKES = {
    "killed": (lambda sim: os.kill(sim.pid, signal.SIGKILL), "crash", signal.SIGKILL),
    "segfault": (lambda sim: os.kill(sim.pid, signal.SIGSEGV), "crash", signal.SIGSEGV),
    "hang": (lambda sim: os.kill(sim.pid, signal.SIGSTOP), "hang", signal.SIGKILL),
    "garbage": (write_into_its_answers, "crash", None),
}


class StruckScript:
    """Plays back actions; once, after it has seen pictures in the middle of a trial, lets the simulator be struck."""

    spec = PolicySpec(
        name="script",
        cameras=(CameraSpec(name="head_camera"),),
        action_type="qpos",
        chunk_steps=CHUNK_STEPS,
        execute_steps=CHUNK_STEPS,
        needs_instruction=False,
        stateful=False,
    )

    def __init__(self, actions):
        self._actions, self.sim, self.strike, self._thread = actions, None, None, None
        self.limit_s = REQUEST_LIMIT_S
        self.seen = []

    def reset(self, info):
        self.seen.clear()

    def act(self, observation):
        self.seen.append(observation.images["head_camera"].tobytes())
        if observation.step == STRIKES_AT_STEP and self.strike is not None:
            strike, self.strike = self.strike, None
            self.sim._limit_s = self.limit_s
            self._thread = threading.Thread(target=lambda: (time.sleep(INTO_THE_CHUNK_S), strike()))
            self._thread.start()
        steps = np.arange(observation.step, observation.step + CHUNK_STEPS)
        return self._actions[np.minimum(steps, len(self._actions) - 1)]

    def finish(self):
        self._thread.join()

    def close(self):
        pass


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """A worker of the pool, its policy, its simulators and the trial, with how the trial ends undisturbed."""
    log = tmp_path_factory.mktemp("logs") / "worker.log"
    plain = RenderSettings(shader="minimal", shadow_map_px=0, device="cpu", environment=find_renderer().environment)

    def make(name):
        return RoboTwinSimulator(find_install(), find_assets(), plain, log)

    here = scene("stack_blocks_two", horizon_steps=2 * CHUNK_STEPS)
    others = mapped()  # simulators of other tests
    first = make("worker-0")
    first.reset(here)
    actions = np.stack([frame.state for frame in first.expert(record_every=15).frames])[1::4]
    policy = StruckScript(actions)
    found = Worker("worker-0", lambda name: first if first.pid is not None else make(name), LocalDecider(policy))
    spec = TrialSpec(
        backend="b",
        task=here.task,
        config=here.config,
        config_digest="c",
        seed=here.seed,
        instruction="stack",
        instruction_split="unseen",
        horizon_steps=here.horizon_steps,
        action_type="qpos",
        execute_steps=CHUNK_STEPS,
        policy="script",
    )
    job = TrialJob(spec=spec, scene=here, limit_s=600.0)
    undisturbed = found.run(job, 1)
    yield found, policy, job, essence(undisturbed, policy), others
    found.drop_simulator()


def essence(finished, policy):
    assert isinstance(finished, Finished), finished
    record = finished.value
    return record.outcome, record.steps, record.policy_calls, record.state_digest, tuple(policy.seen)


def mapped():
    """Pieces of shared memory with a worker that this process still maps or that still have a name."""
    own = {line.split()[5] for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/shm/evalkit-" in line}
    return own | {str(path) for path in Path("/dev/shm").glob(f"evalkit-{os.getpid()}-*")}


@pytest.mark.parametrize("how", STRIKES)
def test_struck_in_the_middle_of_a_chunk_and_tried_again(worker, how):
    found, policy, job, undisturbed, others = worker
    strike, kind, signal_number = STRIKES[how]
    sim = found._sim
    process = psutil.Process(sim.pid)
    group = os.getpgid(sim.pid)
    policy.sim, policy.strike = sim, lambda: strike(sim)
    policy.limit_s = HANGS_AFTER_S if kind == "hang" else REQUEST_LIMIT_S
    failed = found.run(job, 1)
    policy.finish()
    assert isinstance(failed, Failed)
    assert (failed.scope, failed.error.kind, failed.error.signal) == ("simulator", kind, signal_number)
    assert "'apply'" in failed.error.message
    assert not process.is_running()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
    assert mapped() <= others
    assert essence(found.run(job, 2), policy) == undisturbed
