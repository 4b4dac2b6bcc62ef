"""The loop of one trial: build the scene, look, ask, act, until success or the step limit."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from evalkit.core.errors import SimulatorError, UnstableSceneError
from evalkit.core.outcome import Outcome
from evalkit.core.record import GRIPPERS_HARDLY_OPEN, ErrorInfo, Timings, TrialRecord
from evalkit.core.rng import stream_seed
from evalkit.core.trial import TrialSpec
from evalkit.episode.decide import Decider, Decision
from evalkit.episode.video import CAMERA, TrialVideo
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation
from evalkit.policy.findings import hardly_open, widest_gripper
from evalkit.sim.contract import Scene, SimObservation, Simulator, StepResult

RECORD_EVERY_STEPS = 15
"""Physics steps between the frames of a demonstration: RoboTwin's ``save_freq``."""


def run_trial(
    sim: Simulator,
    policy: Decider,
    spec: TrialSpec,
    scene: Scene,
    *,
    session: str,
    media_root: Path | None = None,
    video: str | None = None,
) -> TrialRecord:
    """Run one trial.

    Args:
        sim: a simulator; whatever it did before doesn't matter.
        policy: the policy to ask.
        spec: the trial.
        scene: the scene ``spec`` names, with the settings of its configuration.
        session: names the episode; unique among those the policy serves at the same time.
        media_root: the run's folder; needed for a video.
        video: path of the video, relative to ``media_root``, or None for no video.

    Raises:
        SimulatorError: the simulator failed; the trial may be tried again.
        HarnessError: the policy's server failed; the trial may be tried again.
    """
    trial = _Trial(sim, policy, spec, scene, session)
    if video is not None and media_root is not None:
        trial.video = TrialVideo(media_root / video)
    try:
        record = trial.run()
        if trial.video is not None and trial.video.finish() is not None and video is not None:
            record = replace(record, media=(video,))
    finally:
        if trial.video is not None:
            trial.video.discard()
    return record


@dataclass
class _Trial:
    sim: Simulator
    policy: Decider
    spec: TrialSpec
    scene: Scene
    session: str
    video: TrialVideo | None = None
    steps: int = 0
    policy_calls: int = 0
    success_step: int | None = None
    planner_failures: int = 0
    gripper_at_first: float = 0.0
    gripper_commanded: float = 0.0
    """The widest that a gripper was at the first look, and was commanded to be."""
    past: deque[Observation] = field(default_factory=deque)
    """What was seen before the present moment, one action apart, as far back as the policy wants to see."""
    seconds: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))

    def run(self) -> TrialRecord:
        drive = self.policy.spec.drive
        try:
            self.build_scene()
        except UnstableSceneError as error:
            what = f"seed {self.spec.seed} was accepted for this backend, but its scene is unstable here: {error}"
            info = ErrorInfo(kind="seed_invalid", message=what, traceback_tail=error.traceback_tail)
            return self.record(Outcome.SIM_ERROR, state_digest="", error=info)
        if drive == "expert":
            return self.run_expert()
        demonstration = self.demonstration() if drive == "demonstration" else None
        return self.run_policy(demonstration)

    def build_scene(self) -> None:
        self.spend("setup_s", self.sim.reset(self.scene).setup_s)

    def run_expert(self) -> TrialRecord:
        result = self.sim.expert()
        self.spend("expert_s", result.expert_s)
        if result.reason.startswith("error"):
            raise SimulatorError("task_code", f"the expert of {self.spec.task} raised: {result.reason}")
        outcome = Outcome.SUCCESS if result.success else Outcome.FAILURE
        return self.record(outcome, state_digest=result.state_digest)

    def demonstration(self) -> ActionChunk:
        """The expert's states after the first one, as actions of the policy's kind, and the same scene built anew."""
        result = self.sim.expert(record_every=RECORD_EVERY_STEPS)
        self.spend("expert_s", result.expert_s)
        if len(result.frames) < 2:
            raise SimulatorError(
                "expert", f"no demonstration of {self.spec.task} seed {self.spec.seed}: {result.reason}"
            )
        self.build_scene()
        poses = self.spec.action_type == "ee"
        return np.stack([frame.endpose if poses else frame.state for frame in result.frames[1:]])

    def run_policy(self, demonstration: ActionChunk | None) -> TrialRecord:
        info = EpisodeInfo(
            session=self.session,
            instruction=self.spec.instruction,
            policy_seed=stream_seed(self.spec.seed, "policy", self.spec.task, self.spec.repeat),
            horizon_steps=self.spec.horizon_steps,
            demonstration=demonstration,
        )
        success: bool | None = None
        try:
            record = self.converse(info)
            if record.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
                success = record.outcome is Outcome.SUCCESS
            return record
        finally:  # also where the simulator failed: the policy may be holding memory for the episode
            self.policy.end(self.session, success)

    def converse(self, info: EpisodeInfo) -> TrialRecord:
        """Observation and actions in turn, until the trial is over."""
        started = time.perf_counter()
        answer = self.policy.reset(info)
        self.count_decision(answer, started)
        if answer.error is not None:
            return self.policy_error(answer.error)
        while True:
            observation = replace(self.look(), history=tuple(self.past))
            started = time.perf_counter()
            answer = self.policy.decide(observation)
            self.count_decision(answer, started)
            if not self.policy_calls:
                self.gripper_at_first = widest_gripper(observation.state, "qpos")
            self.policy_calls += 1
            if answer.chunk is None:
                return self.policy_error(answer.error or ErrorInfo(kind="action_shape", message="no actions"))
            actions = answer.chunk[: self.spec.execute_steps]
            self.gripper_commanded = max(self.gripper_commanded, widest_gripper(actions, self.spec.action_type))
            result = self.execute(actions, observation)
            if result.finished:
                self.film_end()
                outcome = Outcome.SUCCESS if result.success else Outcome.FAILURE
                return self.record(outcome, state_digest=self.sim.state_digest())

    def execute(self, actions: ActionChunk, observation: Observation) -> StepResult:
        """Execute actions, and look between the last ones as far back as the next decision wants to see."""
        wanted = self.policy.spec.history_steps - 1
        if not wanted:
            return self.apply(actions)
        self.see(replace(observation, history=()), wanted)
        unseen = max(1, len(actions) - wanted)
        result = self.apply(actions[:unseen])
        for row in range(unseen, len(actions)):
            if result.finished:
                break
            self.see(self.look(), wanted)
            result = self.apply(actions[row : row + 1])
        return result

    def see(self, observation: Observation, wanted: int) -> None:
        self.past.append(observation)
        while len(self.past) > wanted:
            self.past.popleft()

    def apply(self, actions: ActionChunk) -> StepResult:
        result = self.sim.apply(actions, self.spec.action_type)
        self.count_steps(result)
        return result

    def look(self) -> Observation:
        wanted = [camera.name for camera in self.policy.spec.cameras]
        seen = self.picture([*wanted, CAMERA] if self.video and CAMERA not in wanted else wanted)
        if not np.isfinite(seen.state).all():
            raise SimulatorError("nan_state", f"the robot's state at step {self.steps} is {seen.state.tolist()}")
        _refuse_black(seen, wanted, self.steps)
        return Observation(
            session=self.session,
            step=self.steps,
            instruction=self.spec.instruction,
            state=seen.state,
            endpose=seen.endpose,
            images={name: seen.images[name] for name in wanted},
        )

    def picture(self, cameras: Sequence[str]) -> SimObservation:
        seen = self.sim.observe(cameras)
        self.spend("render_s", seen.render_s)
        if self.video is not None and CAMERA in seen.images:
            self.video.add(seen.images[CAMERA])
        return seen

    def film_end(self) -> None:
        if self.video is not None:
            self.picture([CAMERA])

    def count_decision(self, answer: Decision, started: float) -> None:
        round_trip_s = time.perf_counter() - started
        self.spend("inference_s", answer.inference_s)
        self.spend("queue_s", max(0.0, round_trip_s - answer.inference_s))

    def count_steps(self, result: StepResult) -> None:
        self.steps = result.total_steps
        self.success_step = result.success_step
        self.planner_failures += result.planner_failures
        self.spend("physics_s", result.physics_s)
        self.spend("check_s", result.check_s)

    def policy_error(self, error: ErrorInfo) -> TrialRecord:
        error = replace(error, message=f"at step {self.steps}: {error.message}")
        return self.record(Outcome.POLICY_ERROR, state_digest=self.sim.state_digest(), error=error)

    def spend(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def record(self, outcome: Outcome, *, state_digest: str, error: ErrorInfo | None = None) -> TrialRecord:
        return TrialRecord(
            spec=self.spec,
            outcome=outcome,
            steps=self.steps,
            policy_calls=self.policy_calls,
            success_step=self.success_step,
            planner_failures=self.planner_failures,
            state_digest=state_digest,
            timings=Timings(**self.seconds, wall_s=time.perf_counter() - self.started),
            error=error,
            started_at=self.started_at,
            remarks=(GRIPPERS_HARDLY_OPEN,) if hardly_open(self.gripper_at_first, self.gripper_commanded) else (),
        )


def _refuse_black(seen: SimObservation, cameras: Sequence[str], step: int) -> None:
    """A dead renderer gives pictures of one colour. None is black at first, nor are all of them ever; costs 0.1 ms.

    Later on, a single camera may see nothing: one on a wrist can be covered.
    """
    black = [name for name in cameras if not seen.images[name].any()]
    flat = black if step else [name for name in cameras if seen.images[name].min() == seen.images[name].max()]
    if (black and not step) or (flat and len(flat) == len(cameras)):
        names = ", ".join(black or flat)
        what = f"the picture of {names} at step {step} has one colour only: is the renderer alive?"
        raise SimulatorError("black_frame", what)
