"""evalkit's side of ``throughput.py``: the small world as a simulator, the small policy as a policy, the whole pool.

python sides/evalkit_side.py '{"workers": 2, "tasks": 4, "episodes": 25, ...}'     # prints one JSON line
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path[:0] = [path for path in (str(HERE), str(HERE.parent)) if path not in sys.path]

import toy  # noqa: E402

from evalkit.core.tasks import TASKS  # noqa: E402
from evalkit.core.trial import ActionType, BackendFingerprint, Split, TrialSpec  # noqa: E402
from evalkit.policy.contract import ActionChunk, CameraSpec, EpisodeInfo, Observation, PolicySpec  # noqa: E402
from evalkit.pool.observer import Observer  # noqa: E402
from evalkit.protocol.config import load_config  # noqa: E402
from evalkit.sim.contract import ExpertResult, Scene, SceneInfo, SimObservation, StepResult  # noqa: E402
from evalkit.sim.fake.simulator import FINGERPRINT  # noqa: E402
from evalkit.store.info import ConfigInfo, PolicyInfo, RunInfo  # noqa: E402
from evalkit.store.run import Run  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class ToyJob:
    """What to run, and where."""

    workers: int
    tasks: int
    episodes: int
    horizon: int
    step_ms: float
    images: int
    chunk_steps: int
    stamps: str
    folder: str


class ToySimulator:
    """Implements ``evalkit.sim.contract.Simulator``, in the worker's own process as vla-eval's is in its shard's."""

    def __init__(self, job: ToyJob) -> None:
        self._world = toy.ToyWorld(job.horizon, job.step_ms, job.images, Path(job.stamps))

    def fingerprint(self) -> BackendFingerprint:
        """See the contract."""
        return FINGERPRINT

    def reset(self, scene: Scene) -> SceneInfo:
        """See the contract."""
        number = TASKS.index(scene.task)
        self._world.reset(f"toy_{number}", scene.seed)
        return SceneInfo(setup_s=0.0)

    def observe(self, cameras: Sequence[str]) -> SimObservation:
        """See the contract."""
        started = time.perf_counter()
        pictures = self._world.pictures()
        images = {name: pictures[name] for name in cameras}
        render_s = time.perf_counter() - started
        return SimObservation(state=self._world.state(), endpose=np.zeros(16), images=images, render_s=render_s)

    def apply(self, actions: NDArray[np.float64], action_type: ActionType) -> StepResult:
        """See the contract."""
        before, started, done = self._world.steps, time.perf_counter(), False
        for action in actions:
            done = self._world.step(action)
            if done:
                break
        return StepResult(
            steps=self._world.steps - before,
            total_steps=self._world.steps,
            success=done,
            success_step=self._world.steps if done else None,
            finished=done,
            planner_failures=0,
            physics_s=time.perf_counter() - started,
            check_s=0.0,
        )

    def expert(
        self, *, record_every: int | None = None, cameras: Sequence[str] = (), jpeg_quality: int | None = None
    ) -> ExpertResult:
        """See the contract; nobody solves this world."""
        return ExpertResult(success=False, reason="plan_failed", info={}, expert_s=0.0)

    def instructions(self, task: str, info: Mapping[str, str], split: Split, seed: int, limit: int) -> list[str]:
        """See the contract."""
        return [task]

    def state_digest(self) -> str:
        """See the contract."""
        return self._world.value

    def close(self) -> None:
        """See the contract."""


class ToyPolicy:
    """The small policy, one row after another."""

    def __init__(self, job: ToyJob) -> None:
        self.spec = PolicySpec(
            name="toy",
            cameras=tuple(CameraSpec(name=name) for name in toy.CAMERAS[: job.images]),  # type: ignore[arg-type]
            action_type="qpos",
            chunk_steps=job.chunk_steps,
            execute_steps=job.chunk_steps,
            needs_instruction=False,
            stateful=False,
        )

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> ActionChunk:
        """Decide."""
        return toy.decide(observation.state, observation.images, self.spec.chunk_steps)

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """Decide for each."""
        return [self.act(observation) for observation in observations]

    def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True)
class Make:
    """A factory that travels to Ray's workers."""

    kind: type
    job: ToyJob

    def __call__(self, worker_name: str = "") -> Any:
        """Make one."""
        return self.kind(self.job)


def open_toy_run(job: ToyJob) -> Run:
    """A run with the job's trials in its plan."""
    config = load_config("demo_clean")
    policy = PolicyInfo(
        adapter="toy",
        digest="toy",
        checkpoint=None,
        checkpoint_digest=None,
        step=None,
        execute_steps=job.chunk_steps,
        action_type="qpos",
        device="cpu",
        privileged=False,
    )
    tasks = tuple(TASKS[: job.tasks])
    info = RunInfo(
        run_id="throughput",
        created_at="2026-01-01T00:00:00+00:00",
        evalkit_version="0",
        policy=policy,
        card=None,
        configs={config.name: ConfigInfo(digest=config.digest, split=config.instruction_split, label="?2c")},
        tasks=tasks,
        trials_per_task=job.episodes,
        backend=asdict(FINGERPRINT),
        seed_lists={},
    )
    plan = [
        TrialSpec(
            backend=FINGERPRINT.digest,
            task=task,
            config=config.name,
            config_digest=config.digest,
            seed=1000 * number + episode,
            instruction=task,
            instruction_split=config.instruction_split,
            horizon_steps=job.horizon,
            action_type="qpos",
            execute_steps=job.chunk_steps,
            policy="toy",
        )
        for number, task in enumerate(tasks)
        for episode in range(job.episodes)
    ]
    return Run.create(Path(job.folder), info, plan)


def run(job: ToyJob) -> dict[str, Any]:
    """Run the job through Ray, scheduler and store."""
    from evalkit.pool.drive import run_trials
    from evalkit.pool.ray_crew import RayCrew
    from evalkit.pool.ray_session import ray_session

    config = load_config("demo_clean")
    with ray_session(job.workers):
        crew = RayCrew(job.workers, Make(ToySimulator, job), Make(ToyPolicy, job))
        toy_run = open_toy_run(job)
        try:
            session = run_trials(crew, toy_run, toy_run.plan, {config.name: config}, Observer())
            sizes = crew.batch_sizes
        finally:
            toy_run.close()
            crew.close()
    return {"session_s": session.wall_s, "batch_sizes": sizes, "complete": session.complete}


if __name__ == "__main__":
    print(json.dumps(run(ToyJob(**json.loads(sys.argv[1])))))
