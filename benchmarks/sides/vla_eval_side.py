"""The peer's side of ``throughput.py``: vla-eval 0.8.0's classes, filled as its documentation prescribes.

Runs in vla-eval's own environment, and for RoboTwin's tasks in RoboTwin's interpreter with vla-eval beside it.
Nothing of evalkit's harness takes part: of evalkit come the generated assets, what RoboTwin's task code needs to start
on them (``sim/robotwin/worker/source.py`` and ``shims.py``), the list of seeds, and the policy.

    python vla_eval_side.py toy-server --address 127.0.0.1:8765 --args.chunk_size=16
    python vla_eval_side.py house-server --address 127.0.0.1:8765 --args.checkpoint=step_30000
    python vla_eval_side.py run -c config.yaml --no-docker ...          # vla-eval's own command line
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
# Behind everything else: where the interpreter isn't vla-eval's own, its packages only fill gaps.
sys.path += [folder for folder in os.environ.get("VLA_EVAL_PACKAGES", "").split(os.pathsep) if folder]

import numpy as np  # noqa: E402
import toy  # noqa: E402
from vla_eval.benchmarks.base import StepBenchmark, StepResult  # noqa: E402
from vla_eval.benchmarks.robotwin.benchmark import RoboTwinBenchmark  # noqa: E402
from vla_eval.model_servers.predict import PredictModelServer  # noqa: E402

if os.environ.get("VLA_EVAL_RAW_PICTURES"):
    from vla_eval.protocol.numpy_codec import set_image_format

    set_image_format("raw")


class ToyBenchmark(StepBenchmark):
    """The small world."""

    _ALL_RECORD_FIELDS = frozenset({"reward"})

    def __init__(self, tasks: int, horizon: int, step_ms: float, images: int, stamps: str) -> None:
        super().__init__()
        self._tasks, self._world = tasks, toy.ToyWorld(horizon, step_ms, images, Path(stamps))

    def get_tasks(self) -> list[Any]:
        """See vla-eval."""
        return [{"name": f"toy_{index}", "suite": "toy", "number": index} for index in range(self._tasks)]

    def reset(self, task: Any) -> Any:
        """See vla-eval."""
        self._world.reset(task["name"], 1000 * task["number"] + task["episode_idx"])
        return self._look()

    def step(self, action: Any) -> StepResult:
        """See vla-eval."""
        done = self._world.step(np.asarray(action["actions"]).reshape(-1))
        return StepResult(self._look(), 0.0, done, {"success": True})

    def _look(self) -> dict[str, Any]:
        return {"images": self._world.pictures(), "joint_state": self._world.state()}

    def make_obs(self, raw_obs: Any, task: Any) -> Any:
        """See vla-eval."""
        return {**raw_obs, "task_description": task["name"]}

    def get_step_result(self, step_result: StepResult) -> Any:
        """See vla-eval."""
        return {"success": True}

    def get_metadata(self) -> dict[str, Any]:
        """See vla-eval."""
        return {"max_steps": self._world.horizon}

    def get_action_spec(self) -> dict[str, Any]:
        """See vla-eval."""
        return {}

    def get_observation_spec(self) -> dict[str, Any]:
        """See vla-eval."""
        return {}


class StandinRoboTwin(RoboTwinBenchmark):  # type: ignore[misc]
    """vla-eval's RoboTwin adapter on the generated assets, with accepted seeds from a file instead of its own list.

    Its planner shim and its seed list need a checkout with RoboTwin's assets; the generated planner starts as fast as
    the shim. Everything else is its own: one environment object, its observations, its ``render_every``.
    """

    def __init__(self, job: str, stamps: str, render_every: int = 1) -> None:
        self._job = json.loads(Path(job).read_text())
        self._stamps, self._started, self._seed = Path(stamps), 0.0, 0
        super().__init__(
            task_name=self._job["task"],
            task_config=self._job["config"],
            test_num=len(self._job["trials"]),
            fast_init=False,
            render_every=render_every,
        )

    def _init_robotwin(self) -> None:
        if self._args is not None:
            return
        job = self._job
        sys.path.insert(0, job["worker"])
        import shims
        import source

        code = source.Source(job["layout"], job["code_root"], job["assets_root"])
        shims.stub_missing_modules()
        shims.set_renderer(job["shader"], job["shadow_map_px"])
        import sapien.render

        self._keep = sapien.render.RenderSystem(sapien.Device(job["render_device"]))
        source.use_planner(code, source.standin_planner(job["planner_path"], job["planner_class"]))
        shims.silence_step_counter(code.module("_base_task"))
        shims.sort_file_lists()
        if code.is_package:
            shims.mend_place_fan()
        camera = code.config("_camera_config")[job["settings"]["camera"]["head_camera_type"]]
        folder = code.robot_folder(job["settings"]["embodiment"][0])
        robot = source.load_yaml(os.path.join(folder, "config.yml"))
        self._args = {
            **job["settings"],
            "task_name": job["task"],
            "task_config": job["config"],
            "ckpt_setting": "peer",
            "eval_mode": True,
            "eval_video_log": False,
            "render_freq": 0,
            "planner_backend": "curobo",
            "left_robot_file": folder,
            "right_robot_file": folder,
            "left_embodiment_config": robot,
            "right_embodiment_config": robot,
            "dual_arm_embodied": True,
            "head_camera_h": camera["h"],
            "head_camera_w": camera["w"],
        }
        self._env_class = code.task_class(job["task"])

    def get_tasks(self) -> list[Any]:
        """See vla-eval."""
        self._init_robotwin()
        return [
            {**self._task_entry(trial["seed"], index, trial["instruction"]), "policy_seed": trial["policy_seed"]}
            for index, trial in enumerate(self._job["trials"])
        ]

    def reset(self, task: Any) -> Any:
        """See vla-eval."""
        self._started, self._seed = time.time(), task["seed"]
        return super().reset(task)

    def step(self, action: Any) -> StepResult:
        """See vla-eval."""
        result = super().step(action)
        if result.done:
            line = {"name": self.task_name, "seed": self._seed, "steps": self._steps}
            line.update(value=str(bool(result.info["success"])), started=self._started, ended=time.time())
            with open(self._stamps / f"{os.getpid()}.jsonl", "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        return result

    def make_obs(self, raw_obs: Any, task: Any) -> Any:
        """See vla-eval."""
        facts = {"policy_seed": str(task["policy_seed"]), "step": self._steps, "seed": task["seed"]}
        return {**super().make_obs(raw_obs, task), **facts}


class ToyServer(PredictModelServer):
    """The small policy."""

    def __init__(self, chunk_size: int = 1, max_batch_size: int = 1, max_wait_time: float = 0.01) -> None:
        super().__init__(chunk_size=chunk_size, max_batch_size=max_batch_size, max_wait_time=max_wait_time)
        self._chunk = chunk_size

    def predict_batch(self, obs_batch: Any, ctx_batch: Any) -> list[Any]:
        """See vla-eval."""
        return [{"actions": toy.decide(obs["joint_state"], obs.get("images", {}), self._chunk)} for obs in obs_batch]


class HouseServer(PredictModelServer):
    """evalkit's house policy, batched as its own ``act_batch`` does."""

    def __init__(
        self, checkpoint: str = "step_30000", max_batch_size: int = 1, max_wait_time: float = 0.01, threads: int = 1
    ) -> None:
        import torch

        from evalkit.cli.policy_choice import choose_policy

        self._policy = choose_policy(None, checkpoint).maker()
        torch.set_num_threads(threads)
        self._execute = self._policy.spec.execute_steps
        super().__init__(chunk_size=self._execute, max_batch_size=max_batch_size, max_wait_time=max_wait_time)

    def predict_batch(self, obs_batch: Any, ctx_batch: Any) -> list[Any]:
        """See vla-eval."""
        from evalkit.policy.contract import EpisodeInfo, Observation

        asked = []
        for obs in obs_batch:
            session = f"{obs['seed']}/{obs['policy_seed']}"
            if obs["step"] == 0:
                what = EpisodeInfo(
                    session=session,
                    instruction=obs["task_description"],
                    policy_seed=int(obs["policy_seed"]),
                    horizon_steps=0,
                )
                self._policy.reset(what)
            asked.append(
                Observation(
                    session=session,
                    step=obs["step"],
                    instruction=obs["task_description"],
                    state=np.asarray(obs["joint_state"]),
                    images={name: np.asarray(picture) for name, picture in obs["images"].items()},
                )
            )
        return [{"actions": chunk[: self._execute]} for chunk in self._policy.act_batch(asked)]


def main() -> None:
    """Serve, or hand over to vla-eval's command line."""
    what = sys.argv.pop(1)
    servers = {"toy-server": ToyServer, "house-server": HouseServer}
    if what in servers:
        from vla_eval.model_servers.serve import run_server

        run_server(servers[what])
        return
    sys.argv.insert(1, what)
    from vla_eval.cli.main import main as vla_eval_main

    vla_eval_main()


if __name__ == "__main__":
    main()
