"""RoboTwin's way of evaluating, step by step, for comparison with evalkit. Runs inside RoboTwin's interpreter.

One environment object for the whole run; for each candidate seed the scene, the expert's check and the scene again;
then the policy, with an observation of all cameras before each chunk and after each action, and a render update at
each physics step. So do RoboTwin's ``script/eval_policy.py`` (``eval_policy``) and the template for policies,
``policy/Your_Policy/deploy_policy.py`` (``eval``), as its ACT, DP, RDT and pi0 follow it. Left out, to the loop's
advantage: videos, the instruction, and the observations the template goes on taking when an action in the middle of a
chunk has succeeded. Nothing of evalkit's worker takes part but the shims without which the task code doesn't start on
this machine or not twice alike (missing packages, renderer, planner, step counter, order of files, one broken task).

The policy plays back what the expert commanded, every ``stride``-th frame. On one of ``cut_every`` seeds it stops
half-way and holds still until the step limit, so that both successes and failures are compared.

    python own_loop.py job.json > results.jsonl
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

STARTED = time.perf_counter()
WORKER = Path(__file__).resolve().parent.parent / "evalkit/sim/robotwin/worker"


def main() -> None:
    """Evaluate as the job says; one JSON line a candidate seed."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        job: Dict[str, Any] = json.load(stream)
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, str(WORKER))
    import shims
    import source

    code = source.Source(job["layout"], job["code_root"], job["assets_root"])
    shims.stub_missing_modules()
    shims.set_renderer(job["shader"], job["shadow_map_px"])
    import sapien.render

    keep = sapien.render.RenderSystem(sapien.Device(job["render_device"]))
    if job["planner_path"]:
        source.use_planner(code, source.standin_planner(job["planner_path"], job["planner_class"]))
    shims.silence_step_counter(code.module("_base_task"))
    shims.sort_file_lists()
    if code.is_package:
        shims.mend_place_fan()
    loop = Loop(job, code)
    if job.get("warm_up"):
        loop.warm_up()
        print(json.dumps({"startup_s": time.perf_counter() - STARTED}), file=results, flush=True)
    loop.run(lambda line: print(json.dumps(line), file=results, flush=True))
    results.flush()
    os._exit(0 if keep is not None else 1)


class Loop:
    """The evaluation of one task under one configuration."""

    def __init__(self, job: Dict[str, Any], code: Any) -> None:
        self.job, self.code = job, code
        self.env: Any = code.task_class(job["task"])()
        self.states: List[Any] = []
        self.scenes: List[str] = []  # of the present candidate: digests of what was built
        self.watch: Any = None
        if job.get("profile"):
            import stopwatch

            self.watch = stopwatch.Stopwatch()

    def run(self, report: Any) -> None:
        """Until the wanted number of trials, or of candidate seeds, is reached."""
        job, trials, seed = self.job, 0, self.job["first_seed"]
        while trials < job["trials"] and seed < job["first_seed"] + job["candidates"]:
            self.scenes = []
            line = {"seed": seed, **self.candidate(seed, trials), "scene_digests": self.scenes}
            trials += bool(line["accepted"])
            report(line)
            seed += 1

    def warm_up(self) -> None:
        """A scene and its first picture, which costs seconds: part of the start, as is upstream's renderer test."""
        self.setup(self.job["first_seed"], 0)
        self.env.get_obs()
        self.env.close_env()

    def candidate(self, seed: int, number: int) -> Dict[str, Any]:
        """Expert check, then one trial if the seed is accepted."""
        started = time.perf_counter()
        try:
            self.setup(seed, number)
            self.forget()
            self.states = []
            self.env._take_picture, self.env.save_freq = self.remember, 15
            self.env.play_once()
            # the packaged runtime drops the scene when it closes, so the verdict comes first
            good = bool(self.env.plan_success and self.env.check_success())
            self.env.close_env()
        except self.code.unstable_error():
            self.env.close_env()
            return {"accepted": False, "reason": "unstable", "expert_s": time.perf_counter() - started}
        except Exception as error:
            self.env.close_env()
            reason = "error: {}".format(type(error).__name__)
            return {"accepted": False, "reason": reason, "expert_s": time.perf_counter() - started}
        if not good:
            return {"accepted": False, "reason": "not solved", "expert_s": time.perf_counter() - started}
        actions = self.script(self.states, seed)
        checked = time.perf_counter()
        self.setup(seed, number)
        built = time.perf_counter()
        self.forget()
        line = self.trial(actions)
        self.env.close_env()
        line.update(accepted=True, expert_s=checked - started, trial_s=time.perf_counter() - checked)
        if self.watch is not None:
            line["profile"] = {**self.watch.seconds, "set-up": built - checked}
            self.watch.seconds.clear()
        return {**line, "actions": actions.tolist()}

    def forget(self) -> None:
        """Take away what a recording or a profile of an earlier scene has put before the task's methods."""
        for name in ("_take_picture", "_update_render", "get_obs", "check_success", "take_action"):
            self.env.__dict__.pop(name, None)

    def remember(self, *_args: Any, **_kwargs: Any) -> None:
        """In the place of saving a picture: what is commanded now."""
        import numpy as np

        robot = self.env.robot
        if self.job["action_type"] == "qpos":
            self.states.append(np.array(robot.get_left_arm_jointState() + robot.get_right_arm_jointState()))
            return
        values: List[float] = []
        for arm, gripper in (("left", robot.get_left_gripper_val()), ("right", robot.get_right_gripper_val())):
            values += [*self.env.get_arm_pose(arm), gripper]
        self.states.append(np.array(values))

    def script(self, states: List[Any], seed: int) -> Any:
        """(steps, dimension) actions to play back."""
        import numpy as np

        stride = self.job["stride"]
        chosen = [*states[stride::stride], states[-1]]
        if self.job["cut_every"] and seed % self.job["cut_every"] == 1:
            chosen = chosen[: max(1, len(chosen) // 2)]
        return np.stack(chosen)

    def trial(self, actions: Any) -> Dict[str, Any]:
        """The policy's part: chunks, and an observation after every action."""
        import numpy as np

        env, chunk_steps = self.env, self.job["chunk_steps"]
        if self.watch is not None:
            self.watch.watch(env)
        began = time.perf_counter()
        observe_s = 0.0

        def look() -> None:
            nonlocal observe_s
            start = time.perf_counter()
            if self.job["observe"]:
                env.get_obs()
            observe_s += time.perf_counter() - start

        while env.take_action_cnt < env.step_lim and not env.eval_success:
            look()
            first = env.take_action_cnt
            for index in range(first, first + chunk_steps):
                env.take_action(actions[min(index, len(actions) - 1)], action_type=self.job["action_type"])
                if self.job["observe"]:
                    look()
                if env.eval_success or env.take_action_cnt >= env.step_lim:
                    break
        return {
            "success": bool(env.eval_success),
            "steps": int(env.take_action_cnt),
            "state_digest": self.digest(),
            "poses": {
                "joints": [np.asarray(a.get_qpos(), float).tolist() for a in env.scene.get_all_articulations()],
                "objects": [
                    [*map(float, a.get_pose().p), *map(float, a.get_pose().q)] for a in env.scene.get_all_actors()
                ],
            },
            "observe_s": observe_s,
            "rollout_s": time.perf_counter() - began,
        }

    @staticmethod
    def pose(actor: Any) -> List[float]:
        """Position and quaternion, w first."""
        pose = actor.get_pose()
        return [*map(float, pose.p), *map(float, pose.q)]

    def digest(self) -> str:
        """16 hex digits over float32 joint positions and poses, in the order of creation."""
        import numpy as np

        digest = hashlib.sha256()
        for articulation in self.env.scene.get_all_articulations():
            digest.update(np.ascontiguousarray(articulation.get_qpos(), dtype=np.float32).tobytes())
            if articulation not in (self.env.robot.left_entity, self.env.robot.right_entity):
                root = articulation.get_root_pose()
                digest.update(np.concatenate([root.p, root.q]).astype(np.float32).tobytes())
        for actor in self.env.scene.get_all_actors():
            pose = actor.get_pose()
            digest.update(np.concatenate([pose.p, pose.q]).astype(np.float32).tobytes())
        return digest.hexdigest()[:16]

    def setup(self, seed: int, number: int) -> None:
        """``setup_demo`` with the arguments the evaluation script assembles."""
        self.env.setup_demo(now_ep_num=number, seed=seed, is_test=True, **self.arguments())
        self.scenes.append(self.digest())

    def arguments(self) -> Dict[str, Any]:
        """The configuration file's content, with what the script adds to it."""
        import yaml

        args: Dict[str, Any] = json.loads(json.dumps(self.job["settings"]))
        camera = self.code.config("_camera_config")[args["camera"]["head_camera_type"]]
        folder = self.code.robot_folder(args["embodiment"][0])
        args.update(
            task_name=self.job["task"],
            task_config=self.job["config"],
            ckpt_setting="comparison",
            eval_mode=True,
            eval_video_log=False,
            render_freq=0,
            planner_backend="curobo",
            left_robot_file=folder,
            right_robot_file=folder,
            dual_arm_embodied=True,
            head_camera_h=camera["h"],
            head_camera_w=camera["w"],
        )
        for arm in ("left", "right"):
            with open(os.path.join(folder, "config.yml"), encoding="utf-8") as stream:
                args[arm + "_embodiment_config"] = yaml.safe_load(stream)
        return args


if __name__ == "__main__":
    main()
