"""What a plan will cost, before anything starts. Pure: rates in, seconds out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalkit.plan.rates import Key, PolicyRate, SimulatorRate

PICTURES_SHARE = 0.4
"""A larger share of a worker's time in pictures is worth a remark."""


@dataclass(frozen=True, kw_only=True)
class Portion:
    """What is left to do of one task under one configuration."""

    task: str
    config: str
    trials: int
    horizon_steps: int
    candidates: float = 0.0
    """Expected number of candidate seeds whose expert must be checked first."""

    @property
    def key(self) -> Key:
        """Task and configuration."""
        return self.task, self.config


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Time of one worker, s."""

    setup_s: float = 0.0
    expert_s: float = 0.0
    """Checking candidates: their scenes and their experts."""
    physics_s: float = 0.0
    pictures_s: float = 0.0
    policy_s: float = 0.0
    """The policy's own time; it is spent beside the workers, but each waits for its answer."""
    observations: float = 0.0

    @property
    def total_s(self) -> float:
        """All of it, one after another."""
        return self.setup_s + self.expert_s + self.physics_s + self.pictures_s + self.policy_s

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            setup_s=self.setup_s + other.setup_s,
            expert_s=self.expert_s + other.expert_s,
            physics_s=self.physics_s + other.physics_s,
            pictures_s=self.pictures_s + other.pictures_s,
            policy_s=self.policy_s + other.policy_s,
            observations=self.observations + other.observations,
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A plan's effort, from the shortest to the longest its trials can be."""

    low: Effort | None
    """Every trial as short as the expert's demonstration; None if no demonstration was seen."""
    high: Effort
    """Every trial to its horizon."""
    expected: Effort | None
    """Trials as long as this policy's were so far; None if it never ran."""
    borrowed: tuple[Key, ...] = ()
    """Tasks without rates of their own; the median of the others stands for them."""
    unknown: tuple[str, ...] = field(default=())
    """What no rate says and is therefore not in the sum."""


def estimate(
    portions: Sequence[Portion],
    rates: Mapping[Key, SimulatorRate],
    policy: PolicyRate | None,
    *,
    execute_steps: int,
) -> Cost | None:
    """Effort of what is left.

    Args:
        portions: what is left.
        rates: (task, configuration) -> rate in the same world.
        policy: rate of the policy, or None if it never ran: its time is then unknown, and left out.
        execute_steps: actions between two decisions.

    Returns:
        The cost, or None if no rate is known: a guess would be no estimate.
    """
    if not rates:
        return None
    usual = _median_rate(rates.values())
    borrowed = tuple(portion.key for portion in portions if portion.key not in rates)
    low = high = expected = Effort()
    unknown = set()
    for portion in portions:
        rate = rates.get(portion.key, usual)
        if rate.expert_s is None:
            rate = replace(rate, expert_s=usual.expert_s)
        if portion.candidates and rate.expert_s is None:
            unknown.add("expert checks")
        shortest = min(rate.expert_steps or usual.expert_steps or 0, portion.horizon_steps)
        low += _effort(portion, rate, policy, shortest, execute_steps)
        high += _effort(portion, rate, policy, portion.horizon_steps, execute_steps)
        if policy is not None:
            steps = policy.steps.get(portion.key, policy.horizon_share * portion.horizon_steps)
            expected += _effort(portion, rate, policy, steps, execute_steps)
    if policy is None:
        unknown.add("the policy's own time")
    return Cost(
        low=low if usual.expert_steps is not None else None,
        high=high,
        expected=expected if policy is not None else None,
        borrowed=borrowed,
        unknown=tuple(sorted(unknown)),
    )


def _effort(
    portion: Portion, rate: SimulatorRate, policy: PolicyRate | None, steps: float, execute_steps: int
) -> Effort:
    decisions = math.ceil(steps / execute_steps)
    return Effort(
        setup_s=portion.trials * rate.setup_s,
        expert_s=portion.candidates * (rate.setup_s + (rate.expert_s or 0.0)),
        physics_s=portion.trials * steps * rate.action_s,
        pictures_s=portion.trials * decisions * rate.observation_s,
        policy_s=portion.trials * decisions * policy.decision_s if policy else 0.0,
        observations=portion.trials * decisions,
    )


def _median_rate(rates: Iterable[SimulatorRate]) -> SimulatorRate:
    known = list(rates)
    experts = [rate.expert_s for rate in known if rate.expert_s is not None]
    lengths = [rate.expert_steps for rate in known if rate.expert_steps is not None]
    return SimulatorRate(
        setup_s=statistics.median(rate.setup_s for rate in known),
        action_s=statistics.median(rate.action_s for rate in known),
        observation_s=statistics.median(rate.observation_s for rate in known),
        cameras=known[0].cameras,
        expert_s=statistics.median(experts) if experts else None,
        expert_steps=round(statistics.median(lengths)) if lengths else None,
        n=sum(rate.n for rate in known),
    )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the work is done with."""

    workers: int
    servers: int = 1
    """Policy servers."""
    gpus: int = 0
    pictures_take_turns: bool = False
    """Whether the pictures of all workers are made by the same GPUs, one after another (measured: they are)."""
    start_s: float = 0.0
    """Until the first worker works."""


def wall_s(effort: Effort, machine: Machine) -> tuple[float, str]:
    """Wall time, and what bounds it: ``"workers"``, ``"pictures"`` or ``"the policy"``.

    A lower bound: waiting for one another, and the end when fewer trials than workers are left, are not in it.
    """
    bounds = {"workers": effort.total_s / machine.workers, "the policy": effort.policy_s / machine.servers}
    if machine.pictures_take_turns:
        bounds["pictures"] = effort.pictures_s / max(1, machine.gpus)
    bound = max(bounds, key=lambda name: bounds[name])
    return machine.start_s + bounds[bound], bound
