"""Faults of one trial: the simulator's or the policy's, told in the language of fault files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evalkit.drill.ground import WORLD, Ground, Notes, SimMaker, work
from evalkit.drill.policy import DrillPolicyMaker
from evalkit.drill.processes import crew_left
from evalkit.drill.row import Case, Place, Played
from evalkit.sim.fake.fault_file import Faults, parse_faults

WORKERS = 2
SHORT_LIMIT_S = 5.0
STARTS = 10
"""Wall limit of a trial where one hangs: short, but so many times a simulator's start, which is slow on a busy machine.
Healthy trials take a tenth of a second and perhaps a start."""
LONG_LIMIT_S = 60.0
ONE: Place = ("click_bell", 100002)
OTHER: Place = ("place_shoe", 100005)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a fault must lead to."""

    incidents: Mapping[str, int]
    """Kind of failed attempt -> how many; those of several trials at once count as one (see ``_fits``)."""
    trial_limit_s: float = LONG_LIMIT_S
    policy_limit_s: float = LONG_LIMIT_S


def trial_cases() -> list[Case]:
    """The cases, simulator first."""
    return [
        _sim("segfault", "simulator: segmentation fault", 1, {"crash": 1}, step=3),
        _sim("segfault", "simulator: segmentation fault, every attempt", None, {"crash": 3}, "sim_error crash", step=3),
        _sim("kill", "simulator: SIGKILL, as from the kernel when memory is short", 1, {"crash": 1}, step=3),
        _sim("hang", "simulator: hangs and ignores SIGTERM", 1, {"hang": 1}, step=3, limit_s=SHORT_LIMIT_S),
        _sim(
            "hang",
            "simulator: hangs, every attempt",
            None,
            {"hang": 3},
            "sim_error hang",
            step=3,
            limit_s=SHORT_LIMIT_S,
        ),
        _sim("memory", "simulator: memory balloon", 1, {"crash": 1}, step=3),
        _sim("exception", "simulator: task code raises at step 5", 1, {"task_code": 1}, step=5),
        _sim("slow", "simulator: a trial ten times as slow", None, {}, step=3, seconds=1.0),
        _sim("unstable", "simulator: an accepted scene doesn't settle here", None, {}, "sim_error seed_invalid"),
        _sim("black", "simulator: black pictures", 1, {"black_frame": 1}),
        _sim("black", "simulator: black pictures, every attempt", None, {"black_frame": 3}, "sim_error black_frame"),
        _sim("nan", "simulator: the robot's state isn't finite", 1, {"nan_state": 1}),
        _policy("nan", "policy: NaN in an action", {}, "policy_error action_nonfinite", step=3),
        _policy("inf", "policy: infinity in an action", {}, "policy_error action_nonfinite", step=13),
        _policy("shape", "policy: actions of the wrong shape", {}, "policy_error action_shape", step=13),
        _policy("gripper", "policy: gripper command of 255", {}, "policy_error action_gripper_range", step=13),
        _policy("exception", "policy: raises at step 13", {}, "policy_error exception", step=13),
        _policy("server", "policy server: SIGKILL in mid-batch", {"policy_server_died": 1}, step=13, attempts=1),
        _policy(
            "server",
            "policy server: one scene kills it every time",
            {"policy_server_died": 3},
            "harness_error policy_server_died",
            step=13,
            word="segfault",
        ),
        _policy(
            "server",
            "policy server: one scene hangs it every time",
            {"policy_timeout": 3},
            "policy_error policy_timeout",
            step=13,
            word="hang",
            limit_s=SHORT_LIMIT_S,
        ),
    ]


def play_faults(faults: Faults, expected: Expected | None, ground: Ground, mark: str, name: str) -> Played:
    """Run the sixty trials with faults, on two workers.

    Args:
        faults: what goes wrong.
        expected: what it must lead to; None if nobody knows.
        ground: the drill's ground.
        mark: mark of the session's processes.
        name: name of the run's folder.
    """
    from evalkit.pool.ray_crew import RayCrew

    limits = expected or Expected(incidents={}, trial_limit_s=SHORT_LIMIT_S, policy_limit_s=SHORT_LIMIT_S)
    short_s = max(SHORT_LIMIT_S, STARTS * ground.start_s)
    trial_limit_s, policy_limit_s = (
        short_s if limit == SHORT_LIMIT_S else limit for limit in (limits.trial_limit_s, limits.policy_limit_s)
    )
    policy = DrillPolicyMaker(faults=faults.policy, marks=faults.world.memory)
    crew = RayCrew(WORKERS, SimMaker(faults.world, ground.logs), policy, policy_limit_s=policy_limit_s)
    run, notes = ground.open(name), Notes()
    try:
        session = work(crew, run, notes, trial_limit_s=trial_limit_s, grace_s=LONG_LIMIT_S)
    finally:
        crew.close()
    problems = [] if session.complete else [f"the run stopped early: {session.stop_reason}"]
    if expected is not None and not _fits(notes, expected.incidents):
        problems.append(f"failed attempts were {_count(notes) or 'none'}")
    happened = _count(notes) or "no attempt failed"
    return Played(run=run, happened=happened, problems=tuple(problems), left=crew_left(mark))


def _sim(
    kind: str,
    fault: str,
    attempts: int | None,
    incidents: Mapping[str, int],
    end: str = "",
    *,
    step: int | None = None,
    seconds: float | None = None,
    limit_s: float = LONG_LIMIT_S,
) -> Case:
    entry = {"where": "sim", "kind": kind, "step": step, "attempts": attempts, "seconds": seconds}
    return _case(kind, fault, entry, ONE, Expected(incidents=incidents, trial_limit_s=limit_s), end)


def _policy(
    kind: str,
    fault: str,
    incidents: Mapping[str, int],
    end: str = "",
    *,
    step: int,
    attempts: int | None = None,
    word: str = "",
    limit_s: float = LONG_LIMIT_S,
) -> Case:
    word = word or ("kill" if kind == "server" else kind)
    entry = {"where": "policy", "kind": word, "step": step, "attempts": attempts}
    return _case(kind, fault, entry, OTHER, Expected(incidents=incidents, policy_limit_s=limit_s), end)


def _case(kind: str, fault: str, entry: Mapping[str, Any], place: Place, expected: Expected, end: str) -> Case:
    values = {word: value for word, value in entry.items() if value is not None}
    values |= {"task": place[0], "seed": place[1]}
    name = "-".join(fault.replace(":", "").replace(",", "").lower().split())
    after = "failed attempt only" if expected.incidents else "nothing"
    return Case(
        kind=kind,
        fault=fault,
        play=partial(_play, [values], expected, name),
        ends={place: end} if end else None,
        expected=after,
    )


def _play(entries: Sequence[Mapping[str, Any]], expected: Expected, name: str, ground: Ground, mark: str) -> Played:
    marks = Path(ground.folder / f"{name}.marks")
    faults = parse_faults({"faults": entries}, marks, source="drill", world=WORLD)
    return play_faults(faults, expected, ground, mark, name)


def _fits(notes: Notes, expected: Mapping[str, int]) -> bool:
    """Whether the attempts that failed are those expected.

    A policy server takes the attempts of all its trials with it, so of one trial and attempt there are so many
    incidents, and up to one more of each other worker.
    """
    kinds = {kind for _, kind in notes.incidents}
    worst = max((sum(title == other for other, _ in notes.incidents) for title, _ in notes.incidents), default=0)
    return kinds == set(expected) and worst == sum(expected.values())


def _count(notes: Notes) -> str:
    kinds = [kind for _, kind in notes.incidents]
    return ", ".join(f"{kinds.count(kind)} x {kind}" for kind in sorted(set(kinds)))
