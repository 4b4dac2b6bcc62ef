"""Whatever RoboTwin's process does instead of answering becomes a simulator's error of the right kind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from evalkit.core.errors import SimulatorError
from evalkit.sim.robotwin.host import RoboTwinSimulator
from evalkit.sim.robotwin.layout import Assets, RenderSettings, RoboTwinInstall


def simulator(tmp_path, script):
    """A simulator whose interpreter is a shell script."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return RoboTwinSimulator(
        RoboTwinInstall(python=program, code="c", layout="main", root=tmp_path),
        Assets(kind="stand-in", root=tmp_path, digest="d", planner_path=Path("p")),
        RenderSettings(shader="soft", shadow_map_px=0, device="cpu"),
        tmp_path / "worker.log",
        request_limit_s=5.0,
    )


@pytest.mark.parametrize(
    ("script", "kind", "signal_number", "told"),
    [
        ("echo 'step: 1 / 400, all is well here'; sleep 60", "start", None, "is no message"),
        ("echo 'missing libX' >&2; exit 3", "start", None, "start: missing libX .*exit code 3.*; log: .*worker.log"),
        ("kill -SEGV $$", "start", signal.SIGSEGV, "signal SIGSEGV"),
        ("kill -KILL $$", "start", signal.SIGKILL, "signal SIGKILL"),
    ],
)
def test_garbage_exit_and_signals_instead_of_a_start_are_told(tmp_path, script, kind, signal_number, told):
    sim = simulator(tmp_path, script)
    with pytest.raises(SimulatorError, match=told) as caught:
        sim.fingerprint()
    assert (caught.value.kind, caught.value.signal) == (kind, signal_number)
    assert sim.pid is None
    if "libX" in script:
        assert "missing libX" in caught.value.traceback_tail
