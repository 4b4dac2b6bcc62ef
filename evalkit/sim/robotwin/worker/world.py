"""One RoboTwin scene at a time: RoboTwin's own task object, driven and observed."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import economy
import ends
import gpu
import numpy as np
import shims
import source

CAMERAS = ("head_camera", "left_camera", "right_camera", "front_camera")
FREE_EVERY_SCENES = 10


class UnstableError(Exception):
    """RoboTwin's stability test failed."""


class World:
    """RoboTwin's task code with the settings of one installation."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Import RoboTwin; ``settings``: see ``host.worker_settings``."""
        self.source = source.Source(settings["layout"], settings["code_root"], settings["assets_root"])
        shims.stub_missing_modules()
        shims.set_renderer(settings["shader"], settings["shadow_map_px"])
        device = gpu.render_device(settings["render_device"], settings["render_bus_id"])
        self._process = economy.Process(self.source, device)
        self.render_device = self._process.renders_on
        planner: Any = None
        if settings["planner_path"]:
            planner = source.standin_planner(settings["planner_path"], settings["planner_class"])
        source.use_planner(self.source, planner)
        shims.silence_step_counter(self.source.module("_base_task"))
        shims.sort_file_lists()
        if self.source.is_package:
            shims.mend_place_fan()
        self._take_plan_failures: Callable[[], Dict[str, int]] = getattr(planner, "take_failures", dict)
        self._process.choose_planner(is_curobo=planner is None)
        self.savings: FrozenSet[str] = frozenset()
        self.env: Any = None
        self.stopwatch: Any = None
        self._closed_scenes = 0

    # ------------------------------------------------------------------------------------------------ scene
    def reset(self, scene: Mapping[str, Any]) -> Dict[str, Any]:
        """Build and settle the scene. Raises UnstableError, or whatever the task code raises."""
        start = time.perf_counter()
        savings = frozenset(scene["savings"])
        if savings != self.savings and scene["history"] == "fresh":
            # Beside a render system that RoboTwin made SAPIEN makes none for us, and cycles keep a closed scene's.
            self.close_scene()
            shims.free_closed_scenes()
        self.savings = savings
        self._process.use(savings)
        env = self._next_in_history(scene) if scene["history"] == "task" else self._fresh(scene)
        try:
            env.setup_demo(now_ep_num=0, seed=scene["seed"], is_test=scene["evaluation"], **self._arguments(scene))
        except self.source.unstable_error() as error:
            self._drop_failed(scene)
            raise UnstableError(str(error)) from error
        except BaseException:
            self._drop_failed(scene)
            raise
        env.step_lim = scene["horizon_steps"]
        env.success_counts_at = scene["success"]
        economy.watch_planners(env)
        if self.stopwatch is not None:
            self.stopwatch.watch(env)
        if scene["history"] == "fresh":
            shims.note_what_the_expert_notes(env, scene["task"])
        return {
            "setup_s": time.perf_counter() - start,
            "clutter": ["{object_type}/{object_index}".format(**item) for item in env.record_cluttered_objects],
            "textures": {"wall": env.wall_texture, "table": env.table_texture},
            "state_digest": self.state_digest(),
        }

    def _fresh(self, scene: Mapping[str, Any]) -> Any:
        """A task object as a fresh process has it."""
        self.close_scene()
        task_class = self.source.task_class(scene["task"])
        self.source.reset_process_state(scene["seed"])
        shims.leave_file_lists(as_they_come=False)
        self.env = economy.instrumented(task_class, self.savings)()
        return self.env

    def _next_in_history(self, scene: Mapping[str, Any]) -> Any:
        """The task object that RoboTwin's loop has at this point: the one of the scene before, closed its way.

        What earlier scenes left stays: the shifted default of the clutter generator, ``random``'s state, what the
        expert noted, the robot with its planners where closing keeps them. Files come in the file system's order.
        """
        if self.env is None:
            shims.leave_file_lists(as_they_come=True)
            # A robot that stays would be wrapped once more by each scene, over forces of the one before.
            savings = self.savings - {"passive-forces"}
            self.env = economy.instrumented(self.source.task_class(scene["task"]), savings)()
        else:
            self.env.close_env()
        for name, value in economy.COUNTERS.items():
            setattr(self.env, name, value)
        self.env.__dict__.pop("_take_picture", None)
        return self.env

    def _drop_failed(self, scene: Mapping[str, Any]) -> None:
        if scene["history"] == "fresh":
            self.close_scene()

    def close_scene(self) -> None:
        """Drop the present scene. Without this RoboTwin keeps some 90 MB of each."""
        if self.env is not None:
            self.source.close(self.env)
            self.env = None
            self._closed_scenes += 1
            if self._closed_scenes % FREE_EVERY_SCENES == 0:
                shims.free_closed_scenes()

    def _arguments(self, scene: Mapping[str, Any]) -> Dict[str, Any]:
        """Keyword arguments of ``setup_demo``, made anew: RoboTwin changes them in place."""
        arguments = dict(scene["settings"])
        camera = self.source.config("_camera_config")[arguments["camera"]["head_camera_type"]]
        robot_file = self.source.robot_folder(arguments["embodiment"][0])
        arguments.update(
            task_name=scene["task"],
            task_config=scene["config"],
            ckpt_setting="evalkit",
            planner_backend="curobo",
            eval_mode=scene["evaluation"],
            eval_video_log=False,
            render_freq=0,
            save_data=False,
            left_robot_file=robot_file,
            right_robot_file=robot_file,
            dual_arm_embodied=True,
            left_embodiment_config=source.load_yaml(os.path.join(robot_file, "config.yml")),
            right_embodiment_config=source.load_yaml(os.path.join(robot_file, "config.yml")),
            head_camera_h=camera["h"],
            head_camera_w=camera["w"],
        )
        return arguments

    # ------------------------------------------------------------------------------------------- observation
    def state(self) -> np.ndarray:
        """(14,) commanded joints and grippers, RoboTwin's ``joint_action/vector``."""
        robot = self.env.robot
        return np.array(robot.get_left_arm_jointState() + robot.get_right_arm_jointState(), dtype=np.float64)

    def endpose(self) -> np.ndarray:
        """(16,) per arm xyz + wxyz of RoboTwin's end-effector frame in the world, and the gripper."""
        robot = self.env.robot
        values: List[float] = []
        for arm, gripper in (("left", robot.get_left_gripper_val()), ("right", robot.get_right_gripper_val())):
            values += [*self.env.get_arm_pose(arm), gripper]
        return np.array(values, dtype=np.float64)

    def pictures(self, cameras: Sequence[str]) -> Tuple[Dict[str, np.ndarray], float]:
        """Fresh (height, width, 3) uint8 RGB pictures of the cameras named, and the seconds they took."""
        start = time.perf_counter()
        images: Dict[str, np.ndarray] = {}
        if cameras:
            self.env.update_render_now()
            found = self._cameras()
            for name in cameras:
                if name not in found:
                    raise ValueError("no camera {!r}; this robot has {}".format(name, ", ".join(sorted(found))))
            taken = cameras if "cameras" in self.savings else sorted(found)
            for name in taken:
                found[name].take_picture()
            for name in taken:
                colour = found[name].get_picture("Color")
                images[name] = (colour[:, :, :3] * 255).clip(0, 255).astype(np.uint8)
            images = {name: images[name] for name in cameras}
        return images, time.perf_counter() - start

    def _cameras(self) -> Dict[str, Any]:
        rig = self.env.cameras
        found = dict(zip(rig.static_camera_name, rig.static_camera_list))
        if rig.collect_wrist_camera:
            found.update(left_camera=rig.left_camera, right_camera=rig.right_camera)
        return found

    def poses(self) -> Dict[str, List[List[float]]]:
        """See ``ends.poses``."""
        found: Dict[str, List[List[float]]] = ends.poses(self.env.scene)
        return found

    def state_digest(self) -> str:
        """See ``ends.state_digest``."""
        return str(ends.state_digest(self.env.scene, self.env.robot))

    # ------------------------------------------------------------------------------------------------ motion
    def apply(self, actions: np.ndarray, action_type: str) -> Dict[str, Any]:
        """Execute actions through RoboTwin's ``take_action`` until they end, success, or the step limit."""
        env = self.env
        start = time.perf_counter()
        checks_before, failures_before, steps_before = env.check_s, env.planner_failures, env.take_action_cnt
        for action in actions:
            if env.eval_success or env.take_action_cnt >= env.step_lim:
                break
            with env.inside_action():
                env.take_action(action, action_type=action_type)
            if "observations" not in self.savings and not env.eval_success:
                env.get_obs()
            if env.eval_success and env.success_step is None:
                env.success_step = env.take_action_cnt
        ended = env.take_action_cnt >= env.step_lim
        counts_at = env.success_counts_at
        judged = counts_at == "after_each_chunk" or (counts_at == "at_end" and ended)
        if judged and not env.eval_success and env.check_success():
            env.eval_success, env.success_step = True, env.take_action_cnt
        check_s = env.check_s - checks_before
        return {
            "steps": env.take_action_cnt - steps_before,
            "total_steps": env.take_action_cnt,
            "success": bool(env.eval_success),
            "success_step": env.success_step,
            "finished": bool(env.eval_success or env.take_action_cnt >= env.step_lim),
            "planner_failures": env.planner_failures - failures_before,
            "physics_s": time.perf_counter() - start - check_s,
            "check_s": check_s,
        }

    def expert(
        self, record_every: Optional[int], cameras: Sequence[str], jpeg_quality: Optional[int]
    ) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Run the scripted expert, judge it, and return the verdict and the recorded frames as arrays."""
        env = self.env
        frames: List[Tuple[np.ndarray, np.ndarray, Dict[str, np.ndarray]]] = []
        if record_every:

            def record(*_args: Any, **_kwargs: Any) -> None:
                images = self.pictures(cameras)[0]
                if jpeg_quality is not None:
                    images = {name: _jpeg(image, jpeg_quality) for name, image in images.items()}
                frames.append((self.state(), self.endpose(), images))

            env._take_picture, env.save_freq = record, record_every
        else:
            env.save_freq = None
        start = time.perf_counter()
        self._take_plan_failures()
        info: Mapping[str, Any] = {}
        reason = "plan_failed"
        try:
            info = env.play_once().get("info", {})
            if env.plan_success:
                reason = "ok" if env.check_success() else "check_failed"
        except Exception as error:
            reason = "error: {}: {}".format(
                type(error).__name__, str(error).splitlines()[0][:160] if str(error) else ""
            )
        header: Dict[str, Any] = {
            "success": reason == "ok",
            "reason": reason,
            "info": {str(key): str(value) for key, value in info.items()},
            "expert_s": time.perf_counter() - start,
            "state_digest": self.state_digest(),
            "plan_failures": self._take_plan_failures(),
            "frames": len(frames),
            "jpeg_bytes": {},
        }
        arrays: Dict[str, Any] = {}
        if frames:
            arrays["state"] = np.stack([frame[0] for frame in frames])
            arrays["endpose"] = np.stack([frame[1] for frame in frames])
            for name in cameras:
                pictures = [frame[2][name] for frame in frames]
                if jpeg_quality is None:
                    arrays["image:" + name] = np.stack(pictures)
                else:
                    header["jpeg_bytes"][name] = [len(picture) for picture in pictures]
                    arrays["jpeg:" + name] = np.concatenate(pictures)
        return header, arrays


def _jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """A standard JPEG of an RGB picture, as (bytes,) uint8; the encoder is one that SAPIEN itself requires."""
    import cv2

    done, data = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise RuntimeError("a picture of shape {} couldn't be encoded as JPEG".format(image.shape))
    return np.asarray(data, dtype=np.uint8).reshape(-1)
