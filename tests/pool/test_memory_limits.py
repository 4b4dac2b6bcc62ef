import os
import subprocess
import sys
import time

import pytest
from pool_kit import TASK, Make

from evalkit.cli.run_options import RunOptions
from evalkit.cli.run_placement import LEAST_BYTES, MOST_BYTES, policy_environment, worker_memory
from evalkit.core.errors import PolicyLostError, UserError
from evalkit.core.memory import format_bytes, parse_bytes
from evalkit.policy import supervision
from evalkit.policy.isolated import PolicyProcess
from evalkit.policy.supervision import LIMIT, MemoryGuard, policy_limit_bytes, resident_bytes
from evalkit.pool import worker as worker_module
from evalkit.pool.actors import SimActor
from evalkit.pool.jobs import Finished
from evalkit.pool.worker import Worker
from evalkit.sim.fake import FakeSimulator
from evalkit.sim.fake.process import FakeProcessSimulator

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [("6GiB", 6 << 30), ("6.5 GB", 6_500_000_000), ("800M", 800_000_000), ("512 MiB", 512 << 20), ("1000", 1000)],
)
def test_amounts_of_memory_are_read(text, expected):
    assert parse_bytes(text, "--worker-memory") == expected


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "3 parsecs", "GiB", "1e9"])
def test_what_is_no_amount_of_memory_is_named(text):
    with pytest.raises(UserError, match=f"--worker-memory is {text!r}: give an amount"):
        parse_bytes(text, "--worker-memory")


def test_amounts_of_memory_are_written_for_people():
    assert [format_bytes(number) for number in (6 << 30, 512 << 20)] == ["6.0 GiB", "512 MiB"]


def test_the_limit_of_a_simulator_lies_between_3_and_8_gib_unless_it_is_given():
    assert LEAST_BYTES <= worker_memory(RunOptions(workers=1), 1) <= MOST_BYTES
    assert worker_memory(RunOptions(workers=1000), 1000) == LEAST_BYTES
    assert worker_memory(RunOptions(workers=1, worker_memory="1GiB"), 1) == 1 << 30
    with pytest.raises(UserError, match="--worker-memory is 'lots'"):
        worker_memory(RunOptions(workers=1, worker_memory="lots"), 1)


def test_the_limit_of_a_policys_process_travels_in_the_environment():
    assert int(policy_environment(RunOptions(workers=1))[LIMIT]) > 0
    given = policy_environment(RunOptions(workers=1, policy_memory="2GiB"))
    assert policy_limit_bytes(given) == 2 << 30
    assert policy_limit_bytes({}) is None
    with pytest.raises(UserError, match="EVALKIT_POLICY_MEMORY is '2GiB'"):
        policy_limit_bytes({LIMIT: "2GiB"})


class Held:
    """A job that says which process its simulator is, and how much it holds."""

    key, title, limit_s = "held", "held", 30.0

    def __init__(self, hold_bytes=0, hold_s=0.0):
        self._hold_bytes, self._hold_s = hold_bytes, hold_s

    def run(self, tools):
        tools.sim.hold(self._hold_bytes, self._hold_s)
        return tools.sim.pid


class Holding(FakeSimulator):
    """Has a process that holds what it is told."""

    def __init__(self):
        super().__init__()
        self._process = None

    @property
    def pid(self):
        return self._process.pid if self._process is not None else None

    def hold(self, number, seconds):
        import subprocess

        if self._process is None:
            code = (
                "import sys\nkept = []\nfor line in sys.stdin:\n"
                "    kept.append(bytearray(b'x') * int(line))\n    print(flush=True)"
            )
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        self._process.stdout.readline()
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._process.poll() is None:
            time.sleep(0.02)
        if self._process.poll() is not None:
            raise OSError("its process is gone")

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def test_a_simulator_that_grew_is_replaced_after_its_job(monkeypatch):
    monkeypatch.setattr(worker_module, "LEAST_JOBS", 2)
    worker = Worker("w", Make(Holding), None, memory_bytes=100 * MIB)
    pids = [worker.run(Held(30 * MIB), 1).value for _ in range(6)]
    worker.drop_simulator()
    assert len(set(pids)) > 1
    assert pids[0] == pids[1]
    assert worker.held_bytes() == 0


def test_a_limit_below_what_a_fresh_one_needs_does_not_mean_a_start_for_every_job():
    worker = Worker("w", Make(Holding), None, memory_bytes=1)
    pids = [worker.run(Held(), 1).value for _ in range(12)]
    worker.drop_simulator()
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [10, 2]


def test_without_a_limit_it_stays():
    worker = Worker("w", Make(Holding), None)
    pids = [worker.run(Held(30 * MIB), 1).value for _ in range(5)]
    assert worker.held_bytes() > 150 * MIB
    worker.drop_simulator()
    assert len(set(pids)) == 1


def test_a_simulator_that_balloons_within_a_job_is_killed(monkeypatch):
    monkeypatch.setattr("evalkit.pool.actors.LOOK_S", 0.05)
    bystander = subprocess.Popen(["sleep", "60"])
    actor = SimActor("w", Make(Holding), memory_bytes=100 * MIB)
    assert isinstance(actor.run(Held(60 * MIB, 0.3), 1, None), Finished)
    result = actor.run(Held(300 * MIB, 20.0), 2, None)
    actor.close()
    assert (result.scope, result.error.kind) == ("simulator", "memory")
    assert "more than 200 MiB; the simulator was killed" in result.error.message
    assert bystander.poll() is None, "it was there before the simulator"
    bystander.kill()
    bystander.wait()


def test_the_memory_of_the_fake_simulators_process_is_measured():
    from evalkit.pool.seed_work import make_scene
    from evalkit.protocol.config import load_config
    from evalkit.sim.fake import FakeWorld

    simulator = FakeProcessSimulator(FakeWorld())
    simulator.reset(make_scene(TASK, load_config("demo_clean"), 100000))
    assert resident_bytes(simulator.pid) > MIB
    pid = simulator.pid
    simulator.close()
    assert resident_bytes(pid) == 0


ADAPTER = '''
"""An adapter that grows."""
import os
import numpy as np
from evalkit.policy.contract import CameraSpec, PolicySpec
NEEDS_CHECKPOINT = False
kept = []

class Policy:
    spec = PolicySpec(name="grows", cameras=(), action_type="qpos", chunk_steps=1, execute_steps=1,
                      needs_instruction=False, stateful=False)
    def reset(self, info):
        pass
    def act(self, observation):
        if observation.step:
            kept.append(bytearray(b"x") * observation.step * (1 << 20))
        return np.full((1, 14), float(os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b"))
    def close(self):
        pass

def load(checkpoint, *, device):
    return Policy()
'''


def grow(policy, row):
    for _ in range(100):
        policy.act(row)
        time.sleep(0.05)


def test_a_policys_process_that_grows_is_killed_and_started_again_on_the_gpu_of_its_server(tmp_path, monkeypatch):
    from pathlib import Path

    from evalkit.policy.contract import EpisodeInfo
    from evalkit.policy.remote import load_remote

    monkeypatch.setattr(supervision, "LOOK_S", 0.05)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b")
    monkeypatch.setenv(LIMIT, str(200 * MIB))
    (tmp_path / "grows.py").write_text(ADAPTER)
    policy = load_remote(Path(sys.executable), name="grows", device="cpu", file=tmp_path / "grows.py")
    from evalkit.policy.conformance import example_observations

    [row, *_] = example_observations(policy.spec, session="s", seed=1)
    episode = EpisodeInfo(session="s", instruction="", policy_seed=1, horizon_steps=10)
    policy.reset(episode)
    first = policy.pid
    assert policy.act(type(row)(**{**vars(row), "step": 0}))[0, 0] == 1.0
    with pytest.raises(PolicyLostError, match=r"held \d+ MiB during act, more than 200 MiB; killed") as caught:
        grow(policy, type(row)(**{**vars(row), "step": 50}))
    assert caught.value.kind == "policy_memory"
    policy.reset(episode)
    assert policy.pid not in (None, first)
    assert policy.act(type(row)(**{**vars(row), "step": 0}))[0, 0] == 1.0
    policy.close()


def test_a_guard_that_is_closed_kills_nobody():
    import subprocess

    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    guard = MemoryGuard(process.pid, limit_bytes=1, look_s=30.0)
    guard.close()
    assert guard.found_bytes is None
    assert process.poll() is None
    assert os.getpgid(process.pid) == process.pid
    process.communicate(b"\n")


def test_a_limit_of_its_own_goes_before_the_environments(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMIT, "nonsense")
    process = PolicyProcess(tmp_path / "nowhere", "native", {}, name="p", memory_bytes=1 << 40)
    with pytest.raises(UserError, match="can't be started"):
        process.start()
