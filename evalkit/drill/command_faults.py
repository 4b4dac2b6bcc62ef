"""Faults of the whole command, which therefore runs as a person starts it: a full disk, a killed driver, a stop."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.errors import HarnessError
from evalkit.drill.ground import SCENES, TASKS, Ground, essence, json_lines
from evalkit.drill.lost_node import replayed_in_process
from evalkit.drill.processes import all_left, marked_session
from evalkit.drill.row import Case, Played
from evalkit.sim.fake.factory import FAULTS_VARIABLE
from evalkit.store.run import TRIALS_FILE, open_run

COMMAND = (
    *("run", "--backend", "fake", "--policy", "replay", "--mode", "c2c", "--tasks", ",".join(TASKS)),
    *("--trials", str(SCENES), "--workers", "2"),
)
ROOM_BYTES = 3000
"""Room left on the full disk: for two records and a half."""
BEFORE = 10
"""Trials before something happens."""
LIMIT_S = 180.0


def command_cases() -> list[Case]:
    """The cases."""
    return [
        Case(
            kind="disk",
            fault="the disk under the record file is full",
            play=_full_disk,
            expected="nothing; exit 1 with one line",
        ),
        Case(kind="driver", fault="evalkit itself: SIGKILL", play=_driver_killed, expected="nothing"),
        Case(kind="stop", fault="evalkit itself: SIGTERM", play=_stopped, expected="nothing; exit 75"),
    ]


@dataclass
class _Command:
    """The command in a folder of its own, slowed down so that there is time to do something to it."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "slow.yaml").write_text(json.dumps({"step_s": 0.01, "setup_s": 0.02}))

    def start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, FAULTS_VARIABLE: str(self.folder / "slow.yaml")}
        line = [sys.executable, "-m", "evalkit.cli.main", *COMMAND, "--out", "run"]
        with (self.folder / "stderr.txt").open("wb") as errors, (self.folder / "stdout.txt").open("wb") as output:
            return subprocess.Popen(line, cwd=self.folder, env=environment, stdout=output, stderr=errors)

    def start_and_wait(self, trials: int) -> subprocess.Popen[bytes]:
        """Start it and wait until it has recorded so many trials.

        Raises:
            HarnessError: it ended before, or takes too long.
        """
        process = self.start()
        wait_for(lambda: self.recorded() >= trials or process.poll() is not None)
        if process.poll() is not None:
            raise HarnessError(f"the drill's command ended with {process.returncode}: {self.errors()}")
        return process

    @property
    def log(self) -> Path:
        return self.folder / "run" / TRIALS_FILE

    def recorded(self) -> int:
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def errors(self) -> str:
        return (self.folder / "stderr.txt").read_text(errors="replace")


def _full_disk(ground: Ground, mark: str) -> Played:
    def fill(command: _Command, process: subprocess.Popen[bytes]) -> list[str]:
        size = command.log.stat().st_size
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + ROOM_BYTES, resource.RLIM_INFINITY))
        code = process.wait(timeout=LIMIT_S)
        said = [line for line in command.errors().splitlines() if line.startswith("evalkit: ")]
        problems = [] if code == 1 else [f"exit code {code}"]
        if len(said) != 1 or "the disk doesn't take" not in said[0]:
            problems.append(f"it said {said}")
        if not command.log.read_bytes().endswith(b"\n"):
            problems.append("the record file ends with half a line")
        return problems

    return _disturbed(ground, "disk", fill, "the run ended with one line and exit code 1")


def _driver_killed(ground: Ground, mark: str) -> Played:
    def kill(command: _Command, process: subprocess.Popen[bytes]) -> list[str]:
        process.kill()
        process.wait()
        return []

    return _disturbed(ground, "driver", kill, "everything it had started was gone")


def _stopped(ground: Ground, mark: str) -> Played:
    def stop(command: _Command, process: subprocess.Popen[bytes]) -> list[str]:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=LIMIT_S)
        return [] if code == 75 else [f"exit code {code}"]

    return _disturbed(ground, "stop", stop, "the run ended with exit code 75")


def _disturbed(
    ground: Ground, name: str, disturb: Callable[[_Command, subprocess.Popen[bytes]], list[str]], happened: str
) -> Played:
    """Start the command, disturb it, look for what it left, let the same command finish, compare."""
    command = _Command(ground.folder / f"command-{name}")
    with marked_session() as mark:
        process = command.start_and_wait(BEFORE)
        problems = disturb(command, process)
        left = all_left(mark)
        kept = len(json_lines(command.log)) if command.log.read_bytes().endswith(b"\n") else command.recorded()
        again = command.start()
        code = again.wait(timeout=LIMIT_S)
        left += all_left(mark)
    if code != 0:
        problems.append(f"the same command again ended with {code}: {command.errors()[-300:]}")
    run = open_run(command.folder / "run")
    undisturbed = replayed_in_process(run, command.folder / "undisturbed")
    if essence(run) != essence(undisturbed):
        problems.append("the trials aren't those of an undisturbed run")
    total = len(run.plan)
    text = f"{happened} after {kept} trials; the same command ran the other {total - kept}"
    return Played(run=run, happened=text, problems=tuple(problems), left=left, undisturbed=undisturbed)


def wait_for(what: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait until something is so.

    Raises:
        HarnessError: it isn't within the limit.
    """
    until = time.monotonic() + limit_s
    while not what():
        if time.monotonic() > until:
            raise HarnessError(f"the drill waited {limit_s:g} s in vain")
        time.sleep(0.02)
