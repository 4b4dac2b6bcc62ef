"""Our end of a worker: starts it, asks it, kills it at a deadline; fulfils the simulator contract."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import SimulatorError, UnstableSceneError
from evalkit.core.gpu import bound_bus_id
from evalkit.core.trial import ActionType, BackendFingerprint, Split
from evalkit.sim.contract import ExpertResult, Frame, Scene, SceneInfo, SimObservation, StepResult
from evalkit.sim.robotwin.environment import worker_environment
from evalkit.sim.robotwin.layout import Assets, RenderSettings, RoboTwinInstall
from evalkit.sim.robotwin.worker import wire
from evalkit.sim.robotwin.worker.savings import ALL, check
from evalkit.sim.start import start_error

WORKER = Path(__file__).parent / "worker"
SEMANTICS = 1
"""Raised when a change of the worker or the shims can change an outcome."""
SHARED_BYTES = 8 << 20
"""Room for four 320x240 pictures with much to spare; longer recordings go through the pipe."""
START_LIMIT_S = 300.0
REQUEST_LIMIT_S = 600.0
_numbers = itertools.count()


class RoboTwinSimulator:
    """RoboTwin's task code in a process of its own, started at the first request and again after a failure.

    Args:
        install: the interpreter.
        assets: the asset files.
        render: how pictures are made.
        log_path: file that takes whatever the worker prints.
        request_limit_s: a request that takes longer is a hang; the worker is killed.
        savings: work of RoboTwin's loop to leave out because nobody sees its result (``worker/savings.py``).
    """

    def __init__(
        self,
        install: RoboTwinInstall,
        assets: Assets,
        render: RenderSettings,
        log_path: Path,
        request_limit_s: float = REQUEST_LIMIT_S,
        *,
        savings: Iterable[str] = ALL,
    ) -> None:
        self.savings = check(savings)
        """Read at each reset."""
        self._install, self._assets, self._render = install, assets, render
        self._log_path, self._limit_s = log_path, request_limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._shared: wire.SharedBuffer | None = None
        self._hello: dict[str, Any] = {}

    # ---------------------------------------------------------------------------------------- the contract
    def fingerprint(self) -> BackendFingerprint:
        """What this simulator is made of; starts the worker if it isn't running."""
        self._start()
        versions = self._hello["versions"]
        assets = self._assets
        planner = assets.planner_name or f"{assets.planner_class} in the assets"
        physics = ["sapien", "mplib", "toppra"]
        if assets.planner_path is None:
            planner = "installed"
            # its plans also decide which seeds are accepted
            physics += [name for name in ("nvidia_curobo", "warp-lang", "torch") if name in versions]
        return BackendFingerprint(
            backend="robotwin",
            code=self._install.code,
            assets=assets.kind,
            assets_digest=assets.digest,
            planner=planner,
            physics=", ".join(f"{name}=={versions[name]}" for name in physics),
            renderer=self._render.describe(self._hello["render_device"]),
            semantics=SEMANTICS,
        )

    @property
    def render_bus_id(self) -> str | None:
        """PCI bus id of the GPU that pictures are made on, or None on the CPU; starts the worker."""
        self._start()
        found: str | None = self._hello["render_bus_id"]
        return found

    @property
    def versions(self) -> Mapping[str, str]:
        """Package versions in RoboTwin's interpreter."""
        self._start()
        versions: Mapping[str, str] = self._hello["versions"]
        return versions

    def reset(self, scene: Scene) -> SceneInfo:
        """Build and settle a scene; see the contract."""
        header, _ = self._ask(
            "reset",
            scene={
                "task": scene.task,
                "config": scene.config,
                "settings": dict(scene.settings),
                "seed": scene.seed,
                "horizon_steps": scene.horizon_steps,
                "evaluation": scene.evaluation,
                "success": scene.success,
                "history": scene.history,
                "savings": sorted(self.savings),
            },
        )
        return SceneInfo(
            setup_s=header["setup_s"],
            clutter=tuple(header["clutter"]),
            textures=header["textures"],
            state_digest=header["state_digest"],
        )

    def observe(self, cameras: Sequence[str]) -> SimObservation:
        """Robot state and fresh pictures; see the contract."""
        header, arrays = self._ask("observe", cameras=list(cameras))
        images = {name: arrays[f"image:{name}"] for name in cameras}
        return SimObservation(
            state=arrays["state"], endpose=arrays["endpose"], images=images, render_s=header["render_s"]
        )

    def apply(self, actions: NDArray[np.float64], action_type: ActionType) -> StepResult:
        """Execute actions; see the contract."""
        header, _ = self._ask("apply", {"actions": np.asarray(actions, dtype=np.float64)}, action_type=action_type)
        return StepResult(**header)

    def expert(
        self, *, record_every: int | None = None, cameras: Sequence[str] = (), jpeg_quality: int | None = None
    ) -> ExpertResult:
        """Run the scripted expert; see the contract."""
        header, arrays = self._ask(
            "expert", record_every=record_every, cameras=list(cameras), jpeg_quality=jpeg_quality
        )
        sizes: Mapping[str, Sequence[int]] = header.pop("jpeg_bytes")
        jpegs = {name: _cut(arrays[f"jpeg:{name}"], sizes[name]) for name in sizes}
        frames = tuple(
            Frame(
                state=arrays["state"][index],
                endpose=arrays["endpose"][index],
                images={} if jpegs else {name: arrays[f"image:{name}"][index] for name in cameras},
                jpegs={name: pictures[index] for name, pictures in jpegs.items()},
            )
            for index in range(header.pop("frames"))
        )
        return ExpertResult(frames=frames, **header)

    def instructions(self, task: str, info: Mapping[str, str], split: Split, seed: int, limit: int) -> list[str]:
        """Instruction sentences; see the contract."""
        header, _ = self._ask("instructions", task=task, info=dict(info), split=split, seed=seed, limit=limit)
        sentences: list[str] = header["sentences"]
        if not sentences:
            keys = ", ".join(sorted(info)) or "none"
            raise SimulatorError(
                "instruction", f"no {split} instruction template of {task} fits the placeholders {keys}"
            )
        return sentences

    def state_digest(self) -> str:
        """Digest of joint positions and object poses."""
        return str(self._ask("state_digest")[0]["state_digest"])

    def poses(self) -> dict[str, list[list[float]]]:
        """``joints``: positions of each articulation; ``objects``: xyz and wxyz of each thing; in creation order."""
        found: dict[str, list[list[float]]] = self._ask("poses")[0]["poses"]
        return found

    def profile(self) -> dict[str, float]:
        """Seconds by phase in the worker since this was last asked for; the first time, counting begins."""
        seconds: dict[str, float] = self._ask("profile")[0]["seconds"]
        return seconds

    def close(self) -> None:
        """End the worker."""
        if self._process is not None:
            _kill(self._process)
            self._process = None
        if self._shared is not None:
            self._shared.unlink()
            self._shared = None

    # ------------------------------------------------------------------------------------------ the process
    @property
    def pid(self) -> int | None:
        """Process id of the worker, or None if it isn't running."""
        return self._process.pid if self._process is not None else None

    def _start(self) -> None:
        if self._process is not None:
            return
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        shared_path = f"/dev/shm/evalkit-{os.getpid()}-{next(_numbers)}"
        self._shared = wire.SharedBuffer(shared_path, SHARED_BYTES, create=True)
        with self._log_path.open("ab") as log:
            log_bytes = log.tell()
            self._process = subprocess.Popen(
                [str(self._install.python), "-u", str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=worker_environment(self._install.python, self._render),
                start_new_session=True,
                bufsize=0,
            )
        settings = {
            "layout": self._install.layout,
            "code_root": str(self._install.root) if self._install.root else None,
            "assets_root": str(self._assets.root),
            "planner_path": str(self._assets.planner_path) if self._assets.planner_path else None,
            "planner_class": self._assets.planner_class,
            "shader": self._render.shader,
            "shadow_map_px": self._render.shadow_map_px,
            "render_device": self._render.device,
            "render_bus_id": bound_bus_id() if self._render.device == "cuda" else None,
        }
        request = {"settings": settings, "shared_path": shared_path, "shared_bytes": SHARED_BYTES}
        try:
            self._hello, _ = self._exchange("hello", {}, request, START_LIMIT_S)
        except SimulatorError as error:
            raise start_error("RoboTwin worker", error, self._log_path, log_bytes) from error
        self._shared.forget_name()  # both ends have it mapped: now it ends with them, even if they are killed

    def _ask(
        self, operation: str, arrays: wire.Arrays | None = None, **request: Any
    ) -> tuple[dict[str, Any], wire.Arrays]:
        self._start()
        return self._exchange(operation, arrays or {}, request, self._limit_s)

    def _exchange(
        self, operation: str, arrays: wire.Arrays, request: Mapping[str, Any], limit_s: float
    ) -> tuple[dict[str, Any], wire.Arrays]:
        process, shared = self._process, self._shared
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        # The first message tells the worker where the shared memory is, so it can't use it yet.
        using = None if operation == "hello" else shared
        try:
            wire.send(process.stdin.fileno(), {"op": operation, **request}, arrays, using)
            header, answer = wire.receive(process.stdout.fileno(), shared, time.monotonic() + limit_s)
        except wire.DeadlineError:
            tail = self._log_tail()
            self.close()
            message = f"the RoboTwin worker gave no answer to {operation!r} within {limit_s:.0f} s and was killed"
            raise SimulatorError("hang", message, signal=signal.SIGKILL, traceback_tail=tail) from None
        except wire.ClosedError:
            code = process.wait()
            tail = self._log_tail()
            self.close()
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            message = f"the RoboTwin worker ended with {how} during {operation!r}; log: {self._log_path}"
            raise SimulatorError("crash", message, signal=-code if code < 0 else None, traceback_tail=tail) from None
        except wire.GarbledError as error:
            tail = self._log_tail()
            self.close()
            message = f"the RoboTwin worker's answer to {operation!r} is no message ({error}); it was killed"
            raise SimulatorError("crash", message, traceback_tail=tail) from None
        except BaseException:
            self.close()  # interrupted between request and answer: the pipe can't be trusted any more
            raise
        if header.pop("ok"):
            return header, answer
        if header["kind"] == "unstable":
            raise UnstableSceneError("unstable", header["message"])
        raise SimulatorError(header["kind"], header["message"], traceback_tail=header["traceback"])

    def _log_tail(self) -> str:
        with self._log_path.open("rb") as log:
            log.seek(max(0, self._log_path.stat().st_size - 3000))
            return log.read().decode(errors="replace")


def _cut(data: NDArray[np.uint8], sizes: Sequence[int]) -> list[bytes]:
    """Pieces of the given lengths, in order."""
    ends = itertools.accumulate(sizes)
    return [data[end - size : end].tobytes() for end, size in zip(ends, sizes, strict=True)]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
