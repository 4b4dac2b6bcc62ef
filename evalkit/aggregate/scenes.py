"""The scenes that several plans share, in the order in which all of their policies meet them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from evalkit.core.errors import UserError
from evalkit.core.trial import TrialSpec

Scene = tuple[str, str, str, str, int, str, int, int]


def scenes_in_turn(plans: Sequence[Sequence[TrialSpec]]) -> tuple[tuple[TrialSpec, ...], ...]:
    """Scenes in turn, one of each task and configuration, each as one trial of every plan in the order of the plans.

    So the scenes met hold each task equally often, give or take one, wherever they end.

    Raises:
        UserError: the plans don't meet the same scenes.
    """
    if not plans:
        return ()
    others = [{_scene(spec): spec for spec in plan} for plan in plans[1:]]
    groups: dict[tuple[str, str], list[tuple[TrialSpec, ...]]] = {}
    for spec in plans[0]:
        partners = [other.pop(_scene(spec), None) for other in others]
        found = [partner for partner in partners if partner is not None]
        if len(found) < len(others):
            raise UserError(_alone(spec, len(plans)))
        groups.setdefault((spec.task, spec.config), []).append((spec, *found))
    for other in others:
        if other:
            raise UserError(_alone(next(iter(other.values())), len(plans)))
    return tuple(scene for turn in zip_longest(*groups.values()) for scene in turn if scene is not None)


def _alone(spec: TrialSpec, n: int) -> str:
    scene = f"{spec.task} {spec.config} seed {spec.seed}"
    if n == 2:
        return f"{scene} is in one of the two runs alone: no pair"
    return f"{scene} isn't in all of the {n} runs: they don't meet the same scenes"


def _scene(spec: TrialSpec) -> Scene:
    """What policies must share for their trials to be the same scene."""
    return (
        spec.backend,
        spec.task,
        spec.config,
        spec.config_digest,
        spec.seed,
        spec.instruction,
        spec.horizon_steps,
        spec.repeat,
    )
