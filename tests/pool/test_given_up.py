"""Policies that don't start, and what becomes of the others: with Ray's part of the crew played in this process."""

import asyncio
import threading
import time

import pytest
from gpu_tables import TABLE, gpus
from lossy_policies import Lossy
from pool_kit import CLEAN, Make, Notes, Queue50, essence, fake, open_run, seeds_of
from ray.exceptions import ActorDiedError
from ray_in_process import RayInProcess, put_in_place

from evalkit.core.errors import PolicyLostError, UserError
from evalkit.core.gpu import BUS_ID, VISIBLE
from evalkit.policy.conformance import example_observations
from evalkit.policy.contract import EpisodeInfo
from evalkit.pool.devices import TABLE_FILE
from evalkit.pool.drive import work_through
from evalkit.pool.inline import InlineCrew
from evalkit.pool.lockstep import LockstepWork
from evalkit.pool.placement import Node, place
from evalkit.pool.policy_server import NotLoaded, PolicyRoad, PolicyServer, RemoteDecider, not_loaded
from evalkit.pool.policy_servers import died_at_start
from evalkit.pool.ray_crew import RayCrew
from evalkit.pool.within_memory import OUT_OF_MEMORY
from evalkit.sim.fake import FakeWorld

PLAIN = FakeWorld()
TRIALS = 6
LOST = 100002


@pytest.fixture(autouse=True)
def in_process(monkeypatch, tmp_path):
    put_in_place(monkeypatch)
    (tmp_path / "gpus.csv").write_text(TABLE)
    monkeypatch.setenv(TABLE_FILE, str(tmp_path / "gpus.csv"))
    for name in (VISIBLE, BUS_ID):  # servers set them, here in this very process
        monkeypatch.setenv(name, "")


class Once:
    """Makes a policy the first so many times."""

    def __init__(self, make, times=1, error=None):
        self._make, self._left, self._error = make, times, error or RuntimeError("its files\nare gone")

    def __call__(self):
        self._left -= 1
        if self._left < 0:
            raise self._error
        return self._make()


@pytest.fixture
def runs(tmp_path):
    """Two runs on the same scenes, of policies p and q."""
    seeds = seeds_of(InlineCrew(1, fake(PLAIN)), tmp_path / "seeds", TRIALS)
    return [open_run(tmp_path / name, seeds, TRIALS, policy=name) for name in "pq"]


def in_lockstep(runs, makers, failed, **options):
    crew = RayCrew(2, fake(PLAIN), makers, failed=failed, **options)
    pairs = zip(*(run.plan for run in runs), strict=True)
    work = LockstepWork(runs, [spec for pair in pairs for spec in pair], {CLEAN.name: CLEAN}, Notes(), together=False)
    try:
        session = work_through(crew, work, Notes(), stop=lambda: False, grace_s=60.0)
    finally:
        crew.close()
        for run in runs:
            run.close()
    return session, crew


def lossy(tmp_path):
    memory = tmp_path / "memory"
    memory.mkdir()
    return Make(Lossy, ("policy_crash", LOST, 99, memory))


FULL = RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported")
GONE = "the policy server can't be started again: RuntimeError: its files are gone"


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_policy_that_cannot_be_started_again_ends_its_own_run_alone(runs, tmp_path, on_gpu):
    failed = {}
    plan = place([Node(devices=gpus("a"))], 2) if on_gpu else None
    makers = {"p": Make(Queue50), "q": Once(lossy(tmp_path))}
    session, crew = in_lockstep(runs, makers, failed, placement=plan)
    assert failed == {"q": GONE}
    assert not session.interrupted
    assert session.stop_reason is None
    assert len(essence(runs[0])) == TRIALS
    assert {record.spec.policy for record in runs[0].records().values()} == {"p"}
    assert {record.spec.seed for record in runs[1].records().values()} == {100000, 100001}
    assert [(notice.kind, notice.message) for notice in crew.notices] == [
        ("policy_given_up", f"one of the policies is given up, the others go on: {GONE}")
    ]


def test_the_last_policy_ends_the_session(runs, tmp_path):
    failed = {}
    makers = {"p": Once(Make(Queue50), times=0), "q": Once(lossy(tmp_path))}
    session, _ = in_lockstep(runs[1:], makers, failed)
    assert failed == {"p": "the policy can't be loaded: RuntimeError: its files are gone"}
    assert session.stop_reason == GONE
    assert len(runs[1].remaining()) == TRIALS - 2


def test_a_policy_too_large_beside_the_others_costs_no_gpu(runs):
    failed = {}
    makers = {"p": Make(Queue50), "q": Once(Make(Queue50), times=0, error=FULL)}
    session, crew = in_lockstep(runs[:1], makers, failed, placement=place([Node(devices=gpus("a"))], 2))
    [gpu] = gpus("a")
    what = f"the policy doesn't fit into the memory of {gpu.title}: CUDA error: out of memory"
    assert failed == {"q": f"the policy server can't be started again: {what}"}
    assert session.complete
    assert [notice.kind for notice in crew.notices] == ["policy_given_up"]


def test_a_single_policy_says_in_one_line_why_it_cannot_be_loaded():
    with pytest.raises(UserError) as caught:
        RayCrew(1, fake(PLAIN), Once(Make(Queue50), times=0))
    assert str(caught.value) == "the policy can't be loaded: RuntimeError: its files are gone"


def test_a_gpu_on_which_it_does_not_fit_is_named_with_the_cause_alone():
    crew = RayCrew(2, fake(PLAIN), Once(Make(Queue50), error=FULL), placement=place([Node(devices=gpus("ab"))], 2))
    [notice] = crew.notices
    gpu = gpus("ab")[1].title
    assert notice.message == (
        f"{gpu} is out of use from now on, 1 worker moved to the others: the policy server doesn't start there: the "
        f"policy doesn't fit into the memory of {gpu}: CUDA error: out of memory"
    )
    crew.close()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UserError("step_1 isn't a checkpoint"), NotLoaded(kind="raised", message="step_1 isn't a checkpoint")),
        (PolicyLostError(OUT_OF_MEMORY, "too large"), NotLoaded(kind="memory", message="too large")),
        (PolicyLostError("policy_crash", "it died"), NotLoaded(kind="raised", message="it died")),
        (KeyError(), NotLoaded(kind="raised", message="KeyError")),
        (SystemExit(3), NotLoaded(kind="raised", message="SystemExit: 3")),
        (ValueError("x" * 10_000), NotLoaded(kind="raised", message="ValueError: " + "x" * 600)),
    ],
)
def test_why_a_policy_is_not_loaded(error, expected):
    def make():
        raise error

    assert not_loaded(error) == expected
    assert asyncio.run(PolicyServer(make).spec()) == expected


class Stuck(Queue50):
    """Hangs in every decision, until it may go."""

    gate = threading.Event()

    def act(self, observation):
        self.gate.wait(30)
        return super().act(observation)


def test_the_end_of_an_episode_does_not_wait_for_a_server_that_hangs():
    """Else the trial would take twice the policy's limit, reach its own, and the simulator would have the blame."""
    server = RayInProcess().remote()(PolicyServer).remote(Make(Stuck))
    decider = RemoteDecider(PolicyRoad(server=server, spec=Stuck.spec, generation=0, limit_s=0.5))
    [look] = example_observations(Stuck.spec, session="s", seed=1, count=1)
    episode = EpisodeInfo(session="s", instruction="turn joint 0 to 0.1 rad", policy_seed=1, horizon_steps=10)
    assert decider.reset(episode).error is None
    started = time.monotonic()
    with pytest.raises(PolicyLostError, match="no answer to act"):
        decider.decide(look)
    decider.end("s", None)
    assert 0.5 <= time.monotonic() - started < 0.9
    Stuck.gate.set()
    assert decider.reset(episode).error is None
    decider.close()


TRACE = """The actor died because of an error raised in its creation task, ray::PolicyServer.__init__() (pid=1)
  File "/x/choice.py", line 56, in load
    return load(path)
ModuleNotFoundError: No module named 'my_policy'
"""
DEATH = """The actor died unexpectedly before finishing this task.
\tclass_name: PolicyServer
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker \
unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was killed
"""


@pytest.mark.parametrize(
    ("text", "in_init", "kind", "message"),
    [
        (TRACE, True, "raised", "ModuleNotFoundError: No module named 'my_policy'"),
        (
            DEATH,
            False,
            "died",
            "its process died: Worker unexpectedly exits with a connection error code 2. End of file.",
        ),
        ("the node is gone\n", False, "died", "its process died: the node is gone"),
    ],
)
def test_what_ray_says_of_a_server_that_never_spoke(text, in_init, kind, message):
    error = ActorDiedError()
    error.error_msg, error._actor_init_failed = text, in_init
    found = died_at_start(error)
    assert (found.kind, str(found)) == (kind, message)
