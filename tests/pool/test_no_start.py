"""Simulators that don't start: diagnosed once, in their own words, and no trial is blamed."""

from pathlib import Path

import pytest
from pool_kit import Make, Notes, Queue50, fake, open_run, seeds_of, trials

from evalkit.core.errors import HarnessError, SimulatorError, UserError
from evalkit.core.outcome import Outcome
from evalkit.pool.inline import InlineCrew
from evalkit.pool.starts import Starts
from evalkit.sim.fake import FakeSimulator, FakeWorld
from evalkit.sim.fake.process import FakeProcessSimulator
from evalkit.sim.start import telling_line

PLAIN = FakeWorld()


@pytest.fixture
def run(tmp_path):
    return open_run(tmp_path / "r", seeds_of(InlineCrew(1, fake(PLAIN)), tmp_path, 20), 20)


def test_no_simulator_starts_and_the_run_says_why(tmp_path, run):
    log = tmp_path / "logs/worker-0.log"
    sick = Make(FakeProcessSimulator, (FakeWorld(no_start="no Vulkan device"), 30.0, log))
    notes = Notes()
    with pytest.raises(HarnessError) as caught:
        trials(InlineCrew(2, sick, Queue50), run, notes)
    assert "no simulator starts at all (2 tries): the fake simulator doesn't start" in str(caught.value)
    assert "RuntimeError: no Vulkan device" in str(caught.value)
    assert str(log) in str(caught.value)
    assert "Traceback" in log.read_text()
    assert run.records() == {}
    assert [failure.error.kind for _, failure, _ in notes.incidents] == ["start"]


def test_nothing_installed_is_no_scenes_fault(run):
    def refuse(worker_name):
        raise UserError("RoboTwin's interpreter isn't installed: run `evalkit robotwin install`")

    with pytest.raises(HarnessError, match="run `evalkit robotwin install`"):
        trials(InlineCrew(2, refuse, Queue50), run)
    assert run.records() == {}


class Tired:
    """Makes simulators, some of which don't start."""

    def __init__(self, starts):
        self._starts = iter(starts)

    def __call__(self, worker_name):
        if not next(self._starts, False):
            raise SimulatorError("start", "the GPU is gone")
        return FakeSimulator(PLAIN)


def test_one_bad_start_costs_no_trial_an_attempt(run):
    trials(InlineCrew(1, Tired([False, True]), Queue50), run)
    assert {(record.outcome, record.attempts) for record in run.records().values()} == {(Outcome.SUCCESS, 1)}


def test_one_worker_that_never_starts_does_not_end_the_run(run):
    def make(worker_name):
        if worker_name == "worker-1":
            raise SimulatorError("start", "no device for this one")
        return FakeSimulator(PLAIN)

    notes = Notes()
    assert trials(InlineCrew(3, make, Queue50), run, notes).complete
    assert {(record.outcome, record.attempts) for record in run.records().values()} == {(Outcome.SUCCESS, 1)}
    assert len(notes.incidents) == len(run.incidents()) == 1


def test_workers_that_fail_at_first_and_start_later_are_used():
    starts = Starts()
    for worker in (0, 1):
        starts.failed(worker)
    assert starts.verdict([0, 1, 2]) is None
    assert starts.verdict([0, 1]) == "no simulator starts at all (2 tries)"
    assert starts.rests(0)
    starts.came_up(0)
    assert not starts.rests(0)
    starts.failed(0)
    assert starts.verdict([0, 1]) is None
    for worker in (0, 1):
        starts.failed(worker)
    assert starts.verdict([0, 1]) == "no simulator starts any more (4 tries)"


def test_starts_that_stop_working_in_mid_run_end_it(run):
    class Failing(FakeSimulator):
        def reset(self, scene):
            if scene.seed == 100004:
                raise SimulatorError("crash", "the GPU fell off the bus")
            return super().reset(scene)

    makers = iter([Failing(PLAIN)])

    def make(worker_name):
        found = next(makers, None)
        if found is None:
            raise SimulatorError("start", "the GPU is gone")
        return found

    with pytest.raises(HarnessError, match=r"no simulator starts any more \(2 tries\): the GPU is gone"):
        trials(InlineCrew(1, make, Queue50), run)
    assert {record.spec.seed for record in run.records().values()} == {100000, 100001, 100002, 100003}


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("a/b.py:3: UserWarning: old\n  import x\nerror while loading shared libraries: libX\n", "error while loading"),
        (
            "Traceback (most recent call last):\n  File 'x'\n    y\nImportError: no sapien\nmore",
            "ImportError",
        ),
        ("", ""),
    ],
)
def test_the_line_that_says_why(log, line):
    assert telling_line(log).startswith(line)
    assert (telling_line(log) == "") == (line == "")


def test_a_start_that_ends_without_words_says_how_it_ended(tmp_path):
    from evalkit.sim.start import start_error

    log = Path(tmp_path / "empty.log")
    log.write_text("what an earlier start said\n")
    error = start_error("simulator", SimulatorError("crash", "it ended with SIGSEGV", signal=11), log, 27)
    assert str(error) == f"the simulator doesn't start: it ended with SIGSEGV; log: {log}"
    assert (error.kind, error.signal) == ("start", 11)
