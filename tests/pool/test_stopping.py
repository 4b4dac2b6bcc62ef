"""Stopping in good order: what a signal does, how long trials in flight may take, and that nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from pool_kit import CLEAN, Make, Notes, Queue50, open_run, seeds_of, trials

from evalkit.cli.main import run_cli
from evalkit.cli.stopping import SIGNALS, StopRequest
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeSimulator
from evalkit.sim.fake.world import SEVENTHS

RAYS_OWN = {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}
"""Helpers of Ray that try for a minute to report the death of their node. They hold nothing of ours."""


@pytest.fixture(autouse=True)
def hangup_is_heeded():
    """Under ``nohup`` a hang-up is ignored, here and in all that is started here: nothing would be left to test."""
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


# ----------------------------------------------------------------------------------------------------- the request
@pytest.fixture
def handlers():
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_a_second_does_not(number, handlers, monkeypatch):
    stop = StopRequest(grace_s=60)
    stop.install()
    assert not stop()
    signal.raise_signal(number)
    assert stop()
    assert not stop.at_once(), "what is in flight has its time"
    signal.raise_signal(signal.SIGTERM)  # a queue system's second copy of one request
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 1.5)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert stop.at_once()


def test_a_signal_before_anything_runs_ends_the_command(handlers):
    stop = StopRequest()
    stop.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert stop.requested


def test_what_is_ignored_stays_ignored(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = StopRequest()
    stop.install()
    stop()
    signal.raise_signal(signal.SIGHUP)
    assert not stop()


def test_another_thread_may_give_up_and_the_reason_is_kept():
    stop = StopRequest(grace_s=60)
    thread = threading.Thread(target=stop.give_up, args=("the head is gone",))
    thread.start()
    thread.join()
    stop.give_up("something that came of it")
    assert stop()
    assert stop.at_once()
    assert stop.reason == "the head is gone"


# ----------------------------------------------------------------------------------------------------- the schedule
class Asked(Notes):
    """Asks to stop when some trials have ended."""

    def __init__(self, stop, after):
        super().__init__()
        self._stop, self._after = stop, after

    def trial(self, record):
        super().trial(record)
        if len(self.trials) == self._after:
            self._stop._asked_at = time.monotonic()


@pytest.mark.parametrize(("grace_s", "finished"), [(60.0, 7), (0.0, 5)])
def test_trials_in_flight_end_if_they_may(tmp_path, grace_s, finished):
    make = Make(FakeSimulator, (SEVENTHS,))
    crew = InlineCrew(3, make, Make(Queue50))
    run = open_run(tmp_path / "run", seeds_of(crew, tmp_path / "seeds", 12), 12)
    stop = StopRequest(grace_s)
    session = trials(crew, run, Asked(stop, 5), stop=stop)
    assert session.interrupted
    assert len(run.records()) == finished


def test_a_stop_during_the_last_trials_is_no_interruption(tmp_path):
    make = Make(FakeSimulator, (SEVENTHS,))
    crew = InlineCrew(2, make, Make(Queue50))
    run = open_run(tmp_path / "run", seeds_of(crew, tmp_path / "seeds", 6), 6)
    stop = StopRequest(60.0)
    session = trials(crew, run, Asked(stop, 5), stop=stop)
    assert not session.interrupted
    assert session.complete
    assert CLEAN.name in {record.spec.config for record in run.records().values()}
    assert len(run.records()) == 6


# ----------------------------------------------------------------------------------------------------- the command
COMMAND = [
    *(sys.executable, "-m", "evalkit.cli.main", "run", "--backend", "fake", "--policy", "replay", "--mode", "c2c"),
    *("--tasks", "click_bell", "--trials", "60", "--workers", "2", "--out", "run"),
]


def recorded(folder):
    log = folder / "run/trials.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


@pytest.mark.parametrize(
    ("numbers", "grace"),
    [((signal.SIGHUP,), "20"), ((signal.SIGUSR1, signal.SIGUSR1), "300")],
    ids=["HUP", "USR1 twice"],
)
def test_the_command_ends_soon_and_leaves_nothing(tmp_path, numbers, grace):
    (tmp_path / "slow.yaml").write_text("step_s: 0.02\n")
    with (tmp_path / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "--stop-grace", grace],
            cwd=tmp_path,
            env={**os.environ, "EVALKIT_FAULTS": "slow.yaml"},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    until = time.monotonic() + 120
    while recorded(tmp_path) < 3:
        assert process.poll() is None, (tmp_path / "output.txt").read_text()
        assert time.monotonic() < until
        time.sleep(0.02)
    below = psutil.Process(process.pid).children(recursive=True)
    assert len(below) > 4
    for number in numbers:
        os.killpg(process.pid, number)  # as a terminal that closes does: Ray's processes get it, too
        time.sleep(1.1 if number is not numbers[-1] else 0.0)
    assert process.wait(timeout=40) == 75, (tmp_path / "output.txt").read_text()
    assert "goes on where this one stopped" in (tmp_path / "output.txt").read_text()
    assert 3 <= recorded(tmp_path) < 60
    assert (tmp_path / "run/trials.jsonl").read_bytes().endswith(b"\n")
    _, alive = psutil.wait_procs(below, timeout=15)
    assert {one.name() for one in alive if one.is_running()} <= RAYS_OWN


def test_a_command_gives_the_signals_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = [signal.getsignal(number) for number in SIGNALS]
    assert run_cli(["run", "--policy", "nop", "--backend", "fake"]) == 2
    assert [signal.getsignal(number) for number in SIGNALS] == before
