"""The fake simulator itself, in the calling process."""

from __future__ import annotations

import io
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence

import numpy as np
import psutil
from numpy.typing import NDArray
from PIL import Image

from evalkit.core.errors import SimulatorError, UnstableSceneError
from evalkit.core.hashing import digest
from evalkit.core.trial import ActionType, BackendFingerprint, Split
from evalkit.sim.contract import ExpertResult, Frame, Scene, SceneInfo, SimObservation, StepResult
from evalkit.sim.fake.world import AT_RESET, FakeWorld

FINGERPRINT = BackendFingerprint(
    backend="fake",
    code="evalkit.sim.fake",
    assets="none",
    assets_digest="",
    planner="none",
    physics="none",
    renderer="gradient",
    semantics=1,
)
HOME = np.array([0.0] * 6 + [1.0] + [0.0] * 6 + [1.0])
HEIGHT_PX, WIDTH_PX = 240, 320
TOLERANCE_RAD = 0.05
EXPERT_FRAMES = 9
BALLOON_BYTES, CHUNK_BYTES = 512 << 20, 16 << 20


class FakeSimulator:
    """Implements ``evalkit.sim.contract.Simulator``. Nothing of one scene is left in the next."""

    def __init__(self, world: FakeWorld | None = None) -> None:
        self.world = world or FakeWorld()
        self._scene: Scene | None = None
        self._state = HOME.copy()
        self._goal_rad = 0.0
        self._steps = 0
        self._success_step: int | None = None
        self._pictures = (np.add.outer(np.arange(HEIGHT_PX), np.arange(WIDTH_PX)) % 251).astype(np.uint8)

    def fingerprint(self) -> BackendFingerprint:
        """See the contract."""
        return FINGERPRINT

    def reset(self, scene: Scene) -> SceneInfo:
        """See the contract."""
        self._scene = None
        if self.world.broken:
            raise SimulatorError("task_code", self.world.broken)
        if self.world.unstable(scene.seed) or self.world.fault("unstable", scene.seed, AT_RESET, scene.task):
            raise UnstableSceneError("unstable", f"Objects is unstable in seed({scene.seed}), unstable objects: cube")
        self._scene, self._goal_rad = scene, self.world.goal_rad(scene.task, scene.seed)
        self._state, self._steps, self._success_step = HOME.copy(), 0, None
        self._strike(AT_RESET)
        time.sleep(self.world.setup_s)
        return SceneInfo(setup_s=self.world.setup_s, state_digest=self.state_digest())

    def observe(self, cameras: Sequence[str]) -> SimObservation:
        """See the contract."""
        scene = self._present()
        state = self._state.copy()
        if self.world.fault("nan_state", scene.seed, self._steps, scene.task):
            state[3] = np.nan
        black = self.world.fault("black_frame", scene.seed, self._steps, scene.task) is not None
        shade = np.uint8((scene.seed * 7 + int(self._state[0] * 100)) % 251)
        images = {}
        for index, camera in enumerate(cameras):
            picture = np.stack([self._pictures + shade, self._pictures, np.roll(self._pictures, index, axis=1)], axis=2)
            images[camera] = np.zeros_like(picture) if black else picture
        return SimObservation(state=state, endpose=_endpose(state), images=images, render_s=0.0)

    def apply(self, actions: NDArray[np.float64], action_type: ActionType) -> StepResult:
        """See the contract. Joint 0 takes the first number of an ``ee`` action."""
        scene = self._present()
        steps, failures = 0, 0
        started = time.perf_counter()
        for action in actions:
            if self._success_step is not None or self._steps >= scene.horizon_steps:
                break
            self._strike(self._steps)
            if self.world.step_s > 0:
                time.sleep(self.world.step_s)
            before = self._state
            self._state = action.copy() if action_type == "qpos" else _joints(action)
            failures += sum(np.array_equal(before[arm], self._state[arm]) for arm in (slice(0, 6), slice(7, 13)))
            steps += 1
            self._steps += 1
            if scene.success == "any_instant":
                self._judge()
        if scene.success == "after_each_chunk" or (scene.success == "at_end" and self._steps >= scene.horizon_steps):
            self._judge()
        return StepResult(
            steps=steps,
            total_steps=self._steps,
            success=self._success_step is not None,
            success_step=self._success_step,
            finished=self._success_step is not None or self._steps >= scene.horizon_steps,
            planner_failures=failures,
            physics_s=time.perf_counter() - started,
            check_s=0.0,
        )

    def expert(
        self, *, record_every: int | None = None, cameras: Sequence[str] = (), jpeg_quality: int | None = None
    ) -> ExpertResult:
        """See the contract."""
        scene = self._present()
        goal = self._goal_rad
        if self.world.unsolvable(scene.seed):
            return ExpertResult(success=False, reason="plan_failed", info={}, expert_s=0.0)
        frames = []
        for share in np.linspace(0.0, 1.0, EXPERT_FRAMES):
            self._state = HOME.copy()
            self._state[0] = share * goal
            images = self.observe(cameras).images if cameras else {}
            jpegs: dict[str, bytes] = {}
            if jpeg_quality is not None:
                jpegs = {name: _jpeg(image, jpeg_quality) for name, image in images.items()}
                images = {}
            state = self._state.copy()
            frames.append(Frame(state=state, endpose=_endpose(state), images=images, jpegs=jpegs))
        return ExpertResult(
            success=True,
            reason="ok",
            info={"{A}": f"{goal:.3f}"},
            expert_s=0.0,
            frames=tuple(frames) if record_every else (),
            state_digest=self.state_digest(),
        )

    def instructions(self, task: str, info: Mapping[str, str], split: Split, seed: int, limit: int) -> list[str]:
        """See the contract. The sentence names the goal, so that a policy can follow it."""
        if "{A}" not in info:
            raise SimulatorError("instruction", f"no instruction template of {task} matches {dict(info)}")
        return [f"move joint 0 to {info['{A}']} rad ({split} wording {number})" for number in range(min(limit, 10))]

    def state_digest(self) -> str:
        """See the contract."""
        scene = self._present()
        return digest([scene.task, scene.config, scene.seed, self._state.tolist()])[:16]

    def close(self) -> None:
        """See the contract."""
        self._scene = None

    def _present(self) -> Scene:
        if self._scene is None:
            raise SimulatorError("setup", "no scene: call reset first")
        return self._scene

    def _at_goal(self) -> bool:
        return bool(abs(self._state[0] - self._goal_rad) < TOLERANCE_RAD)

    def _judge(self) -> None:
        if self._success_step is None and self._steps >= self.world.success_after_steps and self._at_goal():
            self._success_step = self._steps

    def _strike(self, step: int) -> None:
        scene = self._present()
        if fault := self.world.fault("slow", scene.seed, step, scene.task):
            time.sleep(fault.slow_s)
        if self.world.fault("exception", scene.seed, step, scene.task):
            raise SimulatorError("task_code", f"AttributeError: the fake task broke at step {step}")
        if self.world.fault("memory", scene.seed, step, scene.task):
            _fill_memory()
        if fault := self.world.fault("crash", scene.seed, step, scene.task):
            os.kill(os.getpid(), fault.signal)
            time.sleep(60.0)
        if self.world.fault("hang", scene.seed, step, scene.task):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(3600.0)


def _fill_memory() -> None:
    """Take memory until there is none: up to a limit that spares the rest of the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + BALLOON_BYTES,) * 2)
    kept = []
    while True:
        kept.append(np.ones(CHUNK_BYTES, np.uint8))


def _jpeg(image: NDArray[np.uint8], quality: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def _endpose(state: NDArray[np.float64]) -> NDArray[np.float64]:
    left = [state[0], 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, state[6]]
    right = [state[7], 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, state[13]]
    return np.array(left + right)


def _joints(action: NDArray[np.float64]) -> NDArray[np.float64]:
    state = HOME.copy()
    state[0], state[6], state[7], state[13] = action[0], action[7], action[8], action[15]
    return state
