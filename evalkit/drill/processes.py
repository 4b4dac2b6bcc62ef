"""Processes of a drill, found by a mark in their environment: what to kill, and what was left behind."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

MARK = "EVALKIT_DRILL"
RAYS_OWN = frozenset({"ray::DashboardAgent", "ray::RuntimeEnvAgent"})
"""Helpers of Ray that try for a minute to report the death of their node. They hold nothing of evalkit."""
PARTS = {
    "simulator": ("evalkit.sim.fake.worker", "robotwin/worker"),
    "worker": ("ray::SimActor",),
    "policy server": ("ray::PolicyServer",),
}
"""Part of a crew -> what its processes' command lines have in them."""
WAIT_S = 30.0


@contextmanager
def marked_session() -> Iterator[str]:
    """Mark this process's future children for the time of the ``with`` block; yields the mark."""
    mark, before = uuid.uuid4().hex, os.environ.get(MARK)
    os.environ[MARK] = mark
    try:
        yield mark
    finally:
        if before is None:
            del os.environ[MARK]
        else:
            os.environ[MARK] = before


def marked(mark: str) -> list[psutil.Process]:
    """Living processes with a mark, this one apart."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # gone by now, or somebody else's
    return found


def part(mark: str, name: str) -> list[psutil.Process]:
    """Living processes of one part of the crew, by the names of ``PARTS``."""
    found = []
    for process in marked(mark):
        try:
            line = " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        if any(word in line for word in PARTS[name]):
            found.append(process)
    return found


def crew_left(mark: str, wait_s: float = WAIT_S) -> tuple[str, ...]:
    """Parts of a crew that are still there, at the latest after a while; Ray itself may stay."""
    return _wait_for(lambda: tuple(name for name in PARTS for _ in part(mark, name)), wait_s)


def all_left(mark: str, wait_s: float = WAIT_S) -> tuple[str, ...]:
    """Names of processes that are still there, at the latest after a while; Ray must be gone, too."""
    return _wait_for(lambda: tuple(sorted({_name(process) for process in marked(mark)} - RAYS_OWN - {""})), wait_s)


def _wait_for(look: Callable[[], tuple[str, ...]], wait_s: float) -> tuple[str, ...]:
    until = time.monotonic() + wait_s
    while True:
        left = look()
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.1)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""
