"""Two writers of one folder: on one machine, and on two whose file system locks nothing."""

import json
import os
import socket
import time

import pytest

from evalkit.core import lease as module
from evalkit.core.lease import WriterLease
from evalkit.core.lock import FileLock


@pytest.fixture
def no_locks(monkeypatch):
    """A network file system without locks: everyone is let in."""
    monkeypatch.setattr(FileLock, "acquire", lambda self: True)


def lease(folder):
    return WriterLease(folder / "lock", beat_s=0.05, silent_s=0.5)


def on(host, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: host)


def test_the_second_process_here_is_refused_and_told_of_the_first(tmp_path):
    first = lease(tmp_path)
    assert first.acquire() is None
    assert lease(tmp_path).acquire() == f"process {os.getpid()} on {socket.gethostname()}"
    first.release()
    assert not (tmp_path / "lock.owner").exists()
    second = lease(tmp_path)
    assert second.acquire() is None
    second.release()


def test_another_machine_is_refused_while_the_writer_shows_life(tmp_path, no_locks, monkeypatch):
    on("a", monkeypatch)
    first = lease(tmp_path)
    assert first.acquire() is None
    on("b", monkeypatch)
    waited_for = []
    assert lease(tmp_path).acquire(waited_for.append) == f"process {os.getpid()} on a"
    assert waited_for == [f"process {os.getpid()} on a"]
    first.release()
    second = lease(tmp_path)
    assert second.acquire() is None, "given back: nothing to wait for"
    second.release()


def test_a_dead_machines_folder_is_taken_over_after_a_while(tmp_path, no_locks, monkeypatch):
    (tmp_path / "lock.owner").write_text(json.dumps({"host": "dead", "pid": 1, "id": "x"}))
    second = lease(tmp_path)
    started = time.monotonic()
    assert second.acquire() is None
    assert time.monotonic() - started >= 0.5
    assert json.loads((tmp_path / "lock.owner").read_text())["host"] == socket.gethostname()
    second.release()


def test_a_writer_that_stood_still_notices_that_it_was_replaced(tmp_path, no_locks):
    first = lease(tmp_path)
    assert first.acquire() is None
    (tmp_path / "lock.owner").write_text(json.dumps({"host": "other", "pid": 2, "id": "y"}))
    until = time.monotonic() + 5
    while not first.is_lost:
        assert time.monotonic() < until
        time.sleep(0.02)
    first.release()
    assert json.loads((tmp_path / "lock.owner").read_text())["host"] == "other", "the new writer's file stays"


def test_a_process_of_this_machine_without_locks(tmp_path, no_locks, monkeypatch):
    owner = tmp_path / "lock.owner"
    owner.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getppid(), "id": "x"}))
    assert lease(tmp_path).acquire() == f"process {os.getppid()} on {socket.gethostname()}"
    owner.write_text(json.dumps({"host": socket.gethostname(), "pid": 2**22 + 1, "id": "x"}))
    taken = lease(tmp_path)
    assert taken.acquire() is None
    taken.release()


def test_half_a_file_is_nobodys(tmp_path):
    (tmp_path / "lock.owner").write_text('{"host": "a", "pi')
    taken = lease(tmp_path)
    assert taken.acquire() is None
    taken.release()


def test_signs_of_life_come_often_enough():
    assert module.BEAT_S * 3 <= module.SILENT_S
