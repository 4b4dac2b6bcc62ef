"""The fake simulator in a process of its own, so that its crashes and hangs are real ones."""

from __future__ import annotations

import contextlib
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import SimulatorError
from evalkit.core.trial import ActionType, BackendFingerprint, Split
from evalkit.sim.contract import ExpertResult, Scene, SceneInfo, SimObservation, StepResult
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.sim.fake.world import FakeWorld
from evalkit.sim.start import start_error

LENGTH_BYTES = 8


def write_frame(stream: IO[bytes], value: Any) -> None:
    """Send one pickled value with its length before it."""
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Receive one value.

    Raises:
        EOFError: the other side closed the stream.
    """
    header = stream.read(LENGTH_BYTES)
    if len(header) < LENGTH_BYTES:
        raise EOFError
    return pickle.loads(stream.read(int.from_bytes(header, "little")))


class FakeProcessSimulator:
    """Implements ``evalkit.sim.contract.Simulator``. The process starts with the first ``reset`` that finds none.

    Args:
        world: what to simulate; its functions must be importable by the process.
        deadline_s: a call that takes longer is a hang: the process is killed.
        log_path: file that takes whatever the process prints; evalkit's own output if None.
    """

    def __init__(self, world: FakeWorld, deadline_s: float = 30.0, log_path: Path | None = None) -> None:
        self._world, self._deadline_s, self._log_path = world, deadline_s, log_path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        return self._process.pid if self._process else None

    def fingerprint(self) -> BackendFingerprint:
        """See the contract."""
        return FINGERPRINT

    def reset(self, scene: Scene) -> SceneInfo:
        """See the contract."""
        if self._process is None:
            self._start()
        result: SceneInfo = self._call("reset", scene)
        return result

    def observe(self, cameras: Sequence[str]) -> SimObservation:
        """See the contract."""
        result: SimObservation = self._call("observe", list(cameras))
        return result

    def apply(self, actions: NDArray[np.float64], action_type: ActionType) -> StepResult:
        """See the contract."""
        result: StepResult = self._call("apply", actions, action_type)
        return result

    def expert(
        self, *, record_every: int | None = None, cameras: Sequence[str] = (), jpeg_quality: int | None = None
    ) -> ExpertResult:
        """See the contract."""
        wanted = {"record_every": record_every, "cameras": list(cameras), "jpeg_quality": jpeg_quality}
        result: ExpertResult = self._call("expert", **wanted)
        return result

    def instructions(self, task: str, info: Mapping[str, str], split: Split, seed: int, limit: int) -> list[str]:
        """See the contract."""
        result: list[str] = self._call("instructions", task, dict(info), split, seed, limit)
        return result

    def state_digest(self) -> str:
        """See the contract."""
        result: str = self._call("state_digest")
        return result

    def close(self) -> None:
        """See the contract."""
        self._end()

    def _start(self) -> None:
        command = [sys.executable, "-m", "evalkit.sim.fake.worker"]
        with contextlib.ExitStack() as stack:
            log = None
            if self._log_path is not None:
                self._log_path.parent.mkdir(parents=True, exist_ok=True)
                log = stack.enter_context(self._log_path.open("ab"))
            before = log.tell() if log is not None else 0
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdin is not None
        write_frame(self._process.stdin, self._world)
        try:
            self._call("pid")
        except SimulatorError as error:
            raise start_error("fake simulator", error, self._log_path, before) from error

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        process = self._process
        if process is None:
            raise SimulatorError("setup", "no simulator process: call reset first")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_frame(process.stdin, (name, arguments, options))
            self._await_answer(process.stdout)
            ok, value = read_frame(process.stdout)
        except (EOFError, BrokenPipeError) as error:
            code = self._end()
            signal = -code if code < 0 else None
            raise SimulatorError("crash", f"the simulator process ended with code {code}", signal=signal) from error
        if ok:
            return value
        raise value

    def _await_answer(self, stream: IO[bytes]) -> None:
        until = time.monotonic() + self._deadline_s
        while not select.select([stream], [], [], 0.1)[0]:
            if time.monotonic() > until:
                self._end()
                raise SimulatorError("hang", f"the simulator gave no answer within {self._deadline_s:g} s; killed")

    def _end(self) -> int:
        process = self._process
        self._process = None
        if process is None:
            return 0
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # unsent bytes for a process that is gone
            process.stdin.close()
        try:
            code = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        process.stdout.close()
        return code
