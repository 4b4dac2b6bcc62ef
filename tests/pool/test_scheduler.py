"""The scheduler with a crew that plays a part: what comes in when is written down beforehand."""

from dataclasses import dataclass

import pytest

from evalkit.core.record import ErrorInfo
from evalkit.pool import scheduler
from evalkit.pool.jobs import Failed, Finished
from evalkit.pool.scheduler import Scheduler

RELOAD_S = 1000.0


@dataclass(frozen=True)
class Task:
    key: str
    limit_s: float = 300.0

    @property
    def title(self):
        return self.key


class Paper:
    """A ``Work`` of some jobs."""

    def __init__(self, *keys):
        self._waiting = [Task(key) for key in keys]
        self.finished, self.incidents = [], []

    def next_job(self):
        return self._waiting.pop(0) if self._waiting else None

    def done(self, job, result, attempts):
        self.finished.append((job.key, attempts))

    def give_up(self, job, failure, attempts):
        raise AssertionError(job)

    def incident(self, job, failure, attempt):
        self.incidents.append((job.key, failure.error.kind))


class Players:
    """Two workers. Job ``a`` meets a dead policy server at first; ``lazy`` jobs never answer."""

    size = 2

    def __init__(self, lazy=(), unserved=()):
        self.now_s, self.killed = 0.0, []
        self._lazy, self._unserved, self._busy, self._died = lazy, unserved, {}, False

    def usable(self, worker):
        return True

    def serves(self, job):
        return job.key not in self._unserved

    def start(self, worker, job, attempt):
        self._busy[worker] = job

    def wait(self, timeout_s):
        self.now_s += timeout_s
        for worker, job in self._busy.items():
            if job.key not in self._lazy:
                del self._busy[worker]
                if job.key == "a" and not self._died:
                    self._died = True
                    error = ErrorInfo(kind="policy_server_died", message="")
                    return [(worker, Failed(scope="policy_server", error=error, worker="w", policy_generation=1))]
                return [(worker, Finished(value=None, worker="w", node="n"))]
        return []

    def kill(self, worker):
        self.killed.append(self._busy.pop(worker).key)
        self._lazy = ()

    def renew_policy(self, generation):
        self.now_s += RELOAD_S


@pytest.fixture
def play(monkeypatch):
    def run(work, crew):
        monkeypatch.setattr(scheduler.time, "monotonic", lambda: crew.now_s)
        one = Scheduler(crew, work, grace_s=60.0)
        assert one.run()
        return one

    return run


def test_a_result_that_waits_while_a_policy_is_loaded_again_is_not_late(play):
    work, crew = Paper("a", "b"), Players()
    play(work, crew)
    assert crew.killed == []
    assert sorted(work.finished) == [("a", 2), ("b", 1)]
    assert work.incidents == [("a", "policy_server_died")]


def test_who_is_late_for_good_is_killed(play):
    work, crew = Paper("b", "c"), Players(lazy=("c",))
    play(work, crew)
    assert crew.killed == ["c"]
    assert work.incidents == [("c", "hang")]
    assert work.finished == [("b", 1), ("c", 2)]
    assert 360.0 < crew.now_s < 363.0


def test_jobs_of_a_policy_that_was_given_up_stay_undone(play):
    work, crew = Paper("b", "c", "d"), Players(unserved=("c",))
    assert play(work, crew).left_undone == 1
    assert work.finished == [("b", 1), ("d", 1)]
