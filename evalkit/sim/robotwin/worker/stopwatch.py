"""Where the time of a trial goes: seconds by phase, each second counted once."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List

SETUP, PHYSICS, DRIVES, RENDER, OBSERVATION, CHECK, PLANNER, OTHER = (
    "set-up",
    "physics",
    "drive targets and passive forces",
    "render updates",
    "observations",
    "success checks",
    "time parametrisation and plans",
    "rest of the task code",
)


class Stopwatch:
    """Counts what wrapped functions take, without what wrapped functions inside them take."""

    def __init__(self) -> None:
        self.seconds: Dict[str, float] = {}
        self._inside: List[float] = []
        self._closed = False

    def wrap(self, phase: str, function: Callable[..., Any], whole: bool = False) -> Callable[..., Any]:
        """The function, timed as part of ``phase``; ``whole``: with everything inside it."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._closed:
                return function(*args, **kwargs)
            self._closed = whole
            self._inside.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - start
                self._closed = False
                self.seconds[phase] = self.seconds.get(phase, 0.0) + took - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took

        return timed

    def watch(self, env: Any) -> None:
        """Time the parts of a scene's task object that a trial calls."""
        robot = env.robot
        parts = [
            (PHYSICS, env.scene, "step", False),
            (RENDER, env, "_update_render", False),
            (OBSERVATION, env, "get_obs", True),
            (CHECK, env, "check_success", True),
            (OTHER, env, "take_action", False),
            (DRIVES, robot, "set_arm_joints", True),
            (DRIVES, robot, "set_gripper", True),
            (PLANNER, robot.left_mplib_planner, "TOPP", True),
            (PLANNER, robot.right_mplib_planner, "TOPP", True),
            (PLANNER, robot, "left_plan_path", True),
            (PLANNER, robot, "right_plan_path", True),
        ]
        for phase, owner, name, whole in parts:
            setattr(owner, name, self.wrap(phase, getattr(owner, name), whole))
