"""The plan: which trials a run consists of. A pure function; the order of completion never decides anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalkit.core.errors import UserError
from evalkit.core.tasks import STEP_LIMITS
from evalkit.core.trial import ActionType, History, SuccessRule, TrialSpec
from evalkit.plan.seeds import SeedList
from evalkit.protocol.config import TaskConfig


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """What a plan depends on besides the seeds."""

    backend: str
    """``BackendFingerprint.digest``."""
    policy: str
    """Policy digest."""
    action_type: ActionType
    execute_steps: int
    trials_per_task: int
    repeats: int = 1
    horizons: Mapping[str, int] = field(default_factory=lambda: STEP_LIMITS)
    """Task -> step limit in actions; RoboTwin's if left out."""
    success: SuccessRule = "any_instant"
    history: History = "fresh"


def make_plan(
    settings: PlanSettings,
    tasks: Sequence[str],
    configs: Sequence[TaskConfig],
    seeds: Mapping[tuple[str, str], SeedList],
) -> tuple[TrialSpec, ...]:
    """Trials in canonical order: task, configuration, seed, repeat.

    Args:
        settings: backend, policy and counts.
        tasks: tasks in canonical order.
        configs: configurations in the order of the mode.
        seeds: (task, configuration name) -> list with at least ``trials_per_task`` accepted seeds.

    Raises:
        UserError: a list is too short.
    """
    plan = []
    for task in tasks:
        for config in configs:
            accepted = seeds[task, config.name].accepted[: settings.trials_per_task]
            if len(accepted) < settings.trials_per_task:
                raise UserError(
                    f"{task} {config.name} has {len(accepted)} accepted seeds, {settings.trials_per_task} are needed: "
                    "run `evalkit seeds build`"
                )
            plan += [
                TrialSpec(
                    backend=settings.backend,
                    task=task,
                    config=config.name,
                    config_digest=config.digest,
                    seed=entry.seed,
                    instruction=entry.instruction,
                    instruction_split=entry.instruction_split,
                    horizon_steps=settings.horizons[task],
                    action_type=settings.action_type,
                    execute_steps=settings.execute_steps,
                    policy=settings.policy,
                    repeat=repeat,
                    success=settings.success,
                    history=settings.history,
                )
                for entry in accepted
                for repeat in range(settings.repeats)
            ]
    return tuple(plan)
