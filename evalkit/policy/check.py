"""Is a policy ready for a run? What can be known without a simulator, checked and said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import PolicyError
from evalkit.policy.chunk import check_chunk
from evalkit.policy.conformance import example_observations, violations
from evalkit.policy.contract import ActionChunk, BatchPolicy, EndingPolicy, Observation, Policy
from evalkit.policy.conversion import Conversion, References
from evalkit.policy.findings import Finding, motion, ranges, starts_nearby
from evalkit.policy.golden import GoldenActions, Moment, largest_difference
from evalkit.policy.rotations import one_sign
from evalkit.policy.suspects import Suspect, ask, distance, episode_of, suspects

CONVERTED_EXACT = 1e-6
"""Radians, metres and shares of a gripper's way that a conversion may lose there and back."""


def check_policy(
    policy: Policy,
    moments: Sequence[Moment] = (),
    *,
    golden: GoldenActions | None = None,
    device: str = "cpu",
    numbers: str = "float32",
) -> list[Finding]:
    """Run every check.

    Args:
        policy: the policy, loaded.
        moments: observations out of demonstrations, for what random ones can't show.
        golden: what it answered to them where it was known to be right.
        device: where it computes.
        numbers: in which numbers: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        Findings in order; a run should wait until all are ok.
    """
    found = [_contract(policy)]
    if policy.spec.drive != "act" or not found[0].ok:
        return found
    rows = [moment.observation for moment in moments]
    rows = rows or example_observations(policy.spec, session="check", seed=7, count=4)
    rows = [replace(row, history=()) if len(moments) else row for row in rows]
    try:
        chunks, seconds = _decide(policy, rows)
    except Exception as error:  # likewise
        return [*found, Finding(name="decisions", ok=False, detail=_raised(error))]
    median_ms = 1000 * float(np.median(seconds))
    found.append(Finding(name="decisions", ok=True, detail=f"{len(chunks)}, median {median_ms:.1f} ms"))
    found.append(_repeats(policy, rows, chunks))
    found += ranges(policy.spec, rows, chunks)
    found += motion(policy.spec, rows, chunks)
    found += _inputs(policy, rows, chunks)
    if moments:
        found.append(starts_nearby(policy.spec, rows, chunks))
        found.append(_expert(policy, moments, rows, chunks))
    if golden is not None:
        found.append(_golden(policy, rows, chunks, golden, device, numbers))
    return found


def golden_chunks(policy: Policy, moments: Sequence[Moment]) -> list[ActionChunk]:
    """The policy's answers to the golden observations.

    Raises:
        PolicyError: it refuses one.
    """
    return _decide(policy, [moment.observation for moment in moments])[0]


def check_conversion(conversion: Conversion, trajectory: NDArray[np.float64]) -> Finding:
    """Does a demonstration come back out of a policy's representation as it went in?

    Args:
        conversion: the policy's.
        trajectory: (steps, 14 or 16) RoboTwin's own numbers.
    """
    references = References(first=trajectory[0], current=trajectory[0])
    try:
        back = conversion.decode(conversion.encode(trajectory, references), references)
    except PolicyError as error:
        return Finding(name="conversion", ok=False, detail=str(error))
    worst = float(np.abs(one_sign(back, conversion.robot) - one_sign(trajectory, conversion.robot)).max())
    detail = f"{len(trajectory)} steps there and back, largest difference {worst:.2g}"
    return Finding(name="conversion", ok=worst <= CONVERTED_EXACT, detail=detail)


def _contract(policy: Policy) -> Finding:
    try:
        broken = violations(policy)
    except Exception as error:  # adapters are other people's code: whatever they raise is the finding
        return Finding(name="contract", ok=False, detail=_raised(error))
    kept = [
        "shapes",
        "same bits again",
        "reset forgets",
        "one episode only" if policy.spec.one_at_a_time else "sessions apart",
    ]
    kept += ["batches bit by bit"] if isinstance(policy, BatchPolicy) else []
    kept += ["end of an episode"] if isinstance(policy, EndingPolicy) else []
    detail = "; ".join(broken) or ("kept" if policy.spec.drive != "act" else f"kept: {', '.join(kept)}")
    return Finding(name="contract", ok=not broken, detail=detail)


def _decide(policy: Policy, rows: Sequence[Observation]) -> tuple[list[ActionChunk], list[float]]:
    chunks, seconds = [], []
    for row in rows:
        policy.reset(episode_of(policy.spec, row))
        started = time.perf_counter()
        chunk = policy.act(row)
        seconds.append(time.perf_counter() - started)
        chunks.append(np.array(check_chunk(chunk, policy.spec)))
    return chunks, seconds


def _repeats(policy: Policy, rows: Sequence[Observation], chunks: Sequence[ActionChunk]) -> Finding:
    """The same observations once more, the other way round, under other sessions, and together if it takes batches."""
    again = [replace(row, session=f"again-{index}") for index, row in enumerate(rows)]
    second = ask(policy, again[::-1])
    same = second is not None and all(map(np.array_equal, second[::-1], chunks))
    detail = "same bits in another order" if same else "other actions for the same observations in another order"
    if same and isinstance(policy, BatchPolicy) and not policy.spec.one_at_a_time:
        for row in again:
            policy.reset(episode_of(policy.spec, row))
        together = policy.act_batch(again)
        same = len(together) == len(chunks) and all(map(np.array_equal, together, chunks))
        detail += f", and in a batch of {len(again)}" if same else f", but other actions in a batch of {len(again)}"
    return Finding(name="repeat", ok=same, detail=detail)


def _inputs(policy: Policy, rows: Sequence[Observation], chunks: Sequence[ActionChunk]) -> list[Finding]:
    """Do pictures and instruction matter to a policy that says it needs them?"""
    ignored = []
    if policy.spec.cameras:
        black = [
            replace(row, images={name: np.zeros_like(image) for name, image in row.images.items()}) for row in rows
        ]
        if _all_same(ask(policy, black), chunks):
            ignored.append("black pictures change nothing")
    if policy.spec.needs_instruction:
        other = [replace(row, instruction="Frobnicate the wugs gently!") for row in rows]
        if _all_same(ask(policy, other), chunks):
            ignored.append("another instruction changes nothing")
    if not ignored:
        return []
    return [Finding(name="inputs", ok=True, note=True, detail="; ".join(ignored))]


def _all_same(answers: Sequence[ActionChunk] | None, chunks: Sequence[ActionChunk]) -> bool:
    return answers is not None and all(map(np.array_equal, answers, chunks))


def _expert(
    policy: Policy, moments: Sequence[Moment], rows: Sequence[Observation], chunks: Sequence[ActionChunk]
) -> Finding:
    """How far from what the expert did next, and whether a mix-up would explain it."""
    references = [moment.then(policy.spec.action_type) for moment in moments]
    far = distance(chunks, references, policy.spec.action_type)
    detail = f"mean distance {far:.2g} from what the expert did next at {len(moments)} moments"
    suspected = suspects(policy, rows, chunks, references)
    if not suspected:
        return Finding(name="expert", ok=True, detail=detail)
    return Finding(name="expert", ok=not suspected[0].certain, note=True, detail=f"{detail}; {_listed(suspected)}")


def _golden(
    policy: Policy,
    rows: Sequence[Observation],
    chunks: Sequence[ActionChunk],
    golden: GoldenActions,
    device: str,
    numbers: str,
) -> Finding:
    tolerance = golden.tolerance(device, numbers)
    if len(golden.chunks) != len(chunks):
        what = f"{len(golden.chunks)} golden answers, but {len(chunks)} observations"
        return Finding(name="golden", ok=False, detail=what)
    worst = largest_difference(chunks, golden.chunks)
    where = f"written on {golden.device} in {golden.numbers}, here {device} in {numbers}: {tolerance:g} is fine"
    detail = f"largest difference {worst:.2g} ({where})"
    if worst <= tolerance:
        return Finding(name="golden", ok=True, detail=detail)
    suspected = suspects(policy, rows, chunks, golden.chunks, tolerance) if np.isfinite(worst) else []
    return Finding(name="golden", ok=False, detail=detail + (f"; {_listed(suspected)}" if suspected else ""))


def _raised(error: Exception) -> str:
    return f"{error.kind if isinstance(error, PolicyError) else type(error).__name__}: {error}"


def _listed(suspected: Sequence[Suspect]) -> str:
    return str(suspected[0])
