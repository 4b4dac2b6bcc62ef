"""Leaving out work of RoboTwin's loop whose result nobody sees: each of ``savings.SAVINGS``, where it is done.

Scenes with flickering light draw random numbers at each update of the renderer. There the updates inside actions are
kept, and an observation that a saving leaves out would draw none if it were taken: colours depend on physics steps and
on the pictures a policy asks for, never on the savings.
"""

from __future__ import annotations

import importlib
import time
from contextlib import contextmanager
from typing import Any, Dict, FrozenSet, Iterator, Optional, Type

import numpy as np
import source
from path_timing import PathTiming

_classes: Dict[Any, type] = {}
_STILL_RAD = 1e-3
_ANSWERS = 256
COUNTERS: Dict[str, Any] = {
    "check_s": 0.0,
    "planner_failures": 0,
    "success_step": None,
    "acting": False,
    "success_counts_at": "any_instant",
}
"""What evalkit adds to a task object, with the values at the beginning of a scene."""


def instrumented(task_class: Type[Any], savings: FrozenSet[str]) -> Type[Any]:
    """A subclass of a RoboTwin task with the counters evalkit reports and the savings named."""
    key = (task_class, savings)
    if key not in _classes:
        _classes[key] = type(task_class.__name__, (_Driven, task_class), {"savings": savings})
    return _classes[key]


class _Driven:
    """Mixed in before a RoboTwin task class: counts, and leaves out what nobody sees."""

    savings: FrozenSet[str] = frozenset()
    crazy_random_light: bool
    check_s: float
    planner_failures: int
    success_step: Any
    acting: bool
    success_counts_at: str

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(COUNTERS)

    @contextmanager
    def inside_action(self) -> Iterator[None]:
        """Mark the time in which no picture is taken."""
        self.acting = True
        try:
            yield
        finally:
            self.acting = False

    def update_render_now(self) -> None:
        """Bring the renderer up to date, for a picture."""
        self._update_render()

    def check_success(self, *args: Any, **kwargs: Any) -> bool:
        """RoboTwin's verdict, timed. Some experts ask with a target of their own."""
        start = time.perf_counter()
        result = super().check_success(*args, **kwargs)  # type: ignore[misc]
        self.check_s += time.perf_counter() - start
        # Inside an action RoboTwin ends the trial on True. The check is still made: some remember what they saw.
        return bool(result) and not (self.acting and self.success_counts_at != "any_instant")

    def _update_render(self) -> None:
        if self.crazy_random_light or not (self.acting and "render-updates" in self.savings):
            super()._update_render()  # type: ignore[misc]

    def get_obs(self) -> Dict[str, Any]:
        """RoboTwin's observation, which nobody looks at: all cameras, without flickering."""
        if self.acting and "observations" in self.savings:
            return {}
        acting, flickers = self.acting, self.crazy_random_light
        self.acting, self.crazy_random_light = False, False
        try:
            observation: Dict[str, Any] = super().get_obs()  # type: ignore[misc]
        finally:
            self.acting, self.crazy_random_light = acting, flickers
        return observation

    def load_robot(self, **arguments: Any) -> None:
        super().load_robot(**arguments)  # type: ignore[misc]
        if "passive-forces" in self.savings:
            _compute_passive_force_once(self)


def _compute_passive_force_once(env: Any) -> None:
    robot, scene = env.robot, env.scene
    fresh: Dict[int, Any] = {}
    step, original = scene.step, robot._entity_qf

    def step_and_forget() -> None:
        fresh.clear()
        step()

    def once(entity: Any) -> None:
        if id(entity) not in fresh:
            original(entity)
            fresh[id(entity)] = entity

    scene.step, robot._entity_qf = step_and_forget, once


class Process:
    """The savings that concern a process, not a scene; changed when a scene comes with others.

    Args:
        code: RoboTwin's code.
        render_device: SAPIEN's device of that name.
    """

    def __init__(self, code: source.Source, render_device: Any) -> None:
        self._code, self._render_device = code, render_device
        self._planners: Dict[bool, Any] = {}
        self._idle_renderer: Any = None
        self._timing: Optional[PathTiming] = None
        self._remembering = Remembering(importlib.import_module("transforms3d.quaternions").mat2quat)
        self._keep_renderer(True)

    @property
    def renders_on(self) -> Any:
        """SAPIEN's device that pictures are made on, as its renderer names it."""
        return self._idle_renderer.device if self._idle_renderer is not None else self._render_device

    def choose_planner(self, is_curobo: bool) -> None:
        """Call when the task code has been imported.

        Args:
            is_curobo: whether its planner is cuRobo's, whose making costs so much that it is kept for all scenes.
        """
        plain = self._code.module("robot.robot").CuroboPlanner
        self._planners = {False: plain, True: source.kept(plain) if is_curobo else source.on_demand(plain)}

    def use(self, savings: FrozenSet[str]) -> None:
        """Begin or end what the next scene shall or shall not have."""
        robot = self._code.module("robot.robot")
        robot.np = DirectNumpy() if "gripper-limits" in savings else np
        quaternions: Any = importlib.import_module("transforms3d.quaternions")
        quaternions.mat2quat = self._remembering if "orientations" in savings else self._remembering.original
        robot.CuroboPlanner = self._planners["planner" in savings]
        self._timing = self._timing or PathTiming()
        self._timing.use("path-timing" in savings)
        self._keep_renderer("renderer" in savings)

    def _keep_renderer(self, keep: bool) -> None:
        # Dropping the last render system of a process costs seconds at the next picture: keep one.
        import sapien.render

        if not keep:
            self._idle_renderer = None
        elif self._idle_renderer is None:
            self._idle_renderer = sapien.render.RenderSystem(self._render_device)


class Remembering:
    """``mat2quat`` that remembers its latest answers: a pure function, asked again and again about what lies still."""

    def __init__(self, original: Any) -> None:
        self.original = original
        self._answers: Dict[bytes, np.ndarray] = {}

    def __call__(self, matrix: Any) -> np.ndarray:
        """(4,) w, x, y, z of a (3, 3) rotation matrix; the caller's own array."""
        if type(matrix) is not np.ndarray or matrix.dtype != np.float64 or matrix.shape != (3, 3):
            return self.original(matrix)  # type: ignore[no-any-return]
        key = matrix.tobytes()
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            answer = self._answers[key] = self.original(matrix)
        return answer.copy()


class DirectNumpy:
    """numpy, except that ``clip`` compares single numbers directly. The result is numpy's, of the same type."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def clip(value: Any, low: Any, high: Any, *args: Any, **kwargs: Any) -> Any:
        """``numpy.clip``; the direct way for float64 between limits of Python's kinds, where no rounding can differ."""
        if type(value) is not np.float64 or args or kwargs or type(low) is not type(high) or type(low) not in _PLAIN:
            return np.clip(value, low, high, *args, **kwargs)
        if value < low:
            return np.float64(low)
        return np.float64(high) if value > high else value


_PLAIN = (int, float)


def watch_planners(env: Any) -> None:
    """Count failed time parametrisations and plans inside actions: RoboTwin swallows them.

    It also fails when an arm is told to hold still (some 1e-4 rad and less, measured); that isn't counted.
    """
    robot = env.robot
    if getattr(robot, "is_watched", False):
        return  # a robot that outlives its scene (``World.reset`` in history) is watched already
    robot.is_watched = True
    for planner in (robot.left_mplib_planner, robot.right_mplib_planner):
        planner.TOPP = _counting_topp(env, planner.TOPP)
    for name in ("left_plan_path", "right_plan_path"):
        setattr(robot, name, _counting_plan(env, getattr(robot, name)))


def _counting_topp(env: Any, topp: Any) -> Any:
    def counted(path: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return topp(path, *args, **kwargs)
        except Exception:
            if env.acting and float(np.abs(np.diff(path, axis=0)).max()) > _STILL_RAD:
                env.planner_failures += 1
            raise

    return counted


def _counting_plan(env: Any, plan: Any) -> Any:
    def counted(*args: Any, **kwargs: Any) -> Any:
        result = plan(*args, **kwargs)
        if env.acting and result["status"] != "Success":
            env.planner_failures += 1
        return result

    return counted
