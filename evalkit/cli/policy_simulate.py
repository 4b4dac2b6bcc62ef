"""``evalkit policy check --simulate``: a demonstration through a policy's conversions, and one trial of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.cli.backends import load_backend
from evalkit.core.errors import UnstableSceneError, UserError
from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.episode.decide import LocalDecider
from evalkit.episode.run_trial import run_trial
from evalkit.policy.contract import Policy
from evalkit.policy.findings import Finding
from evalkit.policy.profile import Profile
from evalkit.policy.registry import load_form
from evalkit.policy.settings import PolicySettings
from evalkit.pool.seed_work import make_scene
from evalkit.protocol.config import load_config

if TYPE_CHECKING:
    from evalkit.sim.contract import Scene, Simulator

FIRST_SEED, CANDIDATES = 100_000, 20


def simulated(policy: Policy, profile: Profile | None, *, task: str, config: str, backend: str) -> list[Finding]:
    """What a simulator shows of a policy.

    Args:
        policy: gets one trial.
        profile: its conversions, if it has a profile: they must solve what the plain replay solves.
        task: which task.
        config: under which configuration.
        backend: which simulator.

    Raises:
        UserError: no scene of the task is solved by the plain replay.
    """
    sim = load_backend(backend).make_simulator("policy-check")
    try:
        return _Check(sim, task, config).run(policy, profile)
    finally:
        sim.close()


class _Check:
    def __init__(self, sim: Simulator, task: str, config: str) -> None:
        self._sim, self._task, self._config = sim, task, load_config(config)

    def run(self, policy: Policy, profile: Profile | None) -> list[Finding]:
        """Scenes in order, until one can be judged by."""
        kind = policy.spec.action_type
        for seed in range(FIRST_SEED, FIRST_SEED + CANDIDATES):
            scene = make_scene(self._task, self._config, seed)
            instruction = self._instruction(scene)
            if instruction is None:
                continue
            plain = self._trial(_replay(kind, []), scene, instruction)
            if plain.outcome is not Outcome.SUCCESS:
                continue
            where = f"{self._task} seed {seed}"
            found = [Finding(name="replay", ok=True, detail=f"solves {where} in {plain.steps} actions, unconverted")]
            if profile is not None:
                found.append(self._converted(profile, scene, instruction, plain))
            if policy.spec.drive == "act":
                found.append(_trial_finding(self._trial(policy, scene, instruction), where))
            return found
        raise UserError(
            f"no scene of {self._task} from seed {FIRST_SEED} to {seed} is solved by its replay: --task ..."
        )

    def _instruction(self, scene: Scene) -> str | None:
        """A sentence of a scene whose expert succeeds; None for another."""
        try:
            self._sim.reset(scene)
        except UnstableSceneError:
            return None
        result = self._sim.expert()
        if not result.success:
            return None
        return self._sim.instructions(scene.task, result.info, self._config.instruction_split, scene.seed, 1)[0]

    def _converted(self, profile: Profile, scene: Scene, instruction: str, plain: TrialRecord) -> Finding:
        steps = profile.content["answer"]["as"]
        record = self._trial(_replay(profile.spec.action_type, steps, profile.home), scene, instruction)
        ok = record.outcome is Outcome.SUCCESS
        detail = f"the same demonstration through the profile's conversions: {_outcome(record)}"
        return Finding(name="converted replay", ok=ok, detail=detail + ("" if ok else "; the conversions lose it"))

    def _trial(self, policy: Policy, scene: Scene, instruction: str) -> TrialRecord:
        spec = TrialSpec(
            backend="policy check",
            task=scene.task,
            config=scene.config,
            config_digest=self._config.digest,
            seed=scene.seed,
            instruction=instruction,
            instruction_split=self._config.instruction_split,
            horizon_steps=scene.horizon_steps,
            action_type=policy.spec.action_type,
            execute_steps=policy.spec.execute_steps,
            policy=policy.spec.name,
        )
        return run_trial(self._sim, LocalDecider(policy), spec, scene, session=f"check-{policy.spec.name}")


def _replay(kind: str, steps: Sequence[object], home: Path = Path()) -> Policy:
    """The expert's actions through a list of conversion steps."""
    robot = {"actions": kind, "cameras": {}, "chunk_steps": 1, "execute_steps": 1, "needs_instruction": False}
    profile = {
        "robot": {**robot, "stateful": False},
        "request": {},
        "answer": {"key": "actions", "as": list(steps)},
    }
    settings = PolicySettings(adapter="converted_replay", name="replay", options={"profile": profile}, folder=home)
    return load_form("converted_replay").load(None, device="cpu", settings=settings)


def _trial_finding(record: TrialRecord, where: str) -> Finding:
    """A failure is the policy's own affair; an error isn't."""
    ok = record.outcome is not Outcome.POLICY_ERROR
    seconds = record.timings.inference_s / max(1, record.policy_calls)
    detail = f"{where}: {_outcome(record)}, {record.policy_calls} decisions of {1000 * seconds:.0f} ms on average"
    return Finding(name="trial", ok=ok, note=record.outcome is Outcome.FAILURE, detail=detail)


def _outcome(record: TrialRecord) -> str:
    told = f" ({record.error.kind}: {record.error.message})" if record.error is not None else ""
    return f"{record.outcome.value} after {record.steps} actions{told}"
