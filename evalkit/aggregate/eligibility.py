"""Why a run's numbers aren't leaderboard numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalkit.aggregate.choice import stopping_line
from evalkit.aggregate.scores import ConfigScore
from evalkit.aggregate.terms import against_the_board
from evalkit.aggregate.world import OWN_PLANNER, is_ray_traced
from evalkit.core.tasks import STEP_LIMITS
from evalkit.protocol.labels import ancestry
from evalkit.protocol.protocols import Protocol
from evalkit.provenance.card import TrainingCard
from evalkit.store.run import Run


def reasons_against(
    run: Run, protocol: Protocol, card: TrainingCard | None, configs: Sequence[ConfigScore]
) -> tuple[str, ...]:
    """One line for each rule of the protocol that the run doesn't follow; empty if it follows all."""
    stopping = stopping_line(run.info, all_done=not run.remaining()) if run.info.stopping else ""
    reasons = [
        *([stopping] if stopping else []),
        *_against_protocol(run, protocol, card),
        *_against_world(run, protocol),
        *_against_coverage(run, protocol, configs),
        *_against_training(run, protocol, card, configs),
    ]
    return tuple(dict.fromkeys(reasons))


def _against_protocol(run: Run, protocol: Protocol, card: TrainingCard | None) -> Iterator[str]:
    if not protocol.is_leaderboard:
        yield f"it was measured under protocol {protocol.name}"
        yield from against_the_board(run, card)
    if run.info.bug_compatible:
        yield "it is a --bug-compatible run: its scenes depend on what the process did before"


def _against_world(run: Run, protocol: Protocol) -> Iterator[str]:
    simulator = run.info.backend.get("backend")
    if simulator != "robotwin":
        yield f"the simulator is {simulator}, not robotwin"
    code = str(run.info.backend.get("code"))
    if "modified" in code or "unknown commit" in code:
        yield f"the task code is {code}, not a commit of RoboTwin's"
    assets = run.info.backend.get("assets")
    if assets != "official":
        yield f"assets are {assets}, not official"
    renderer = str(run.info.backend.get("renderer"))
    if not is_ray_traced(renderer):
        yield f"pictures are drawn by {renderer}, not by RoboTwin's ray tracer"
    planner = str(run.info.backend.get("planner"))
    if planner != OWN_PLANNER:
        yield f"the planner is {planner}, not RoboTwin's own"
    if run.info.policy.privileged:
        yield "the policy is told what no robot could know"
    if run.info.seed_base != 0:
        first = protocol.first_seed + protocol.seed_stride * run.info.seed_base
        yield f"scenes start at seed {first}; the protocol starts at {protocol.first_seed}"
    if run.info.repeats != 1:
        yield f"{run.info.repeats} trials of each scene; the protocol has 1"
    limits = {(spec.task, spec.horizon_steps) for spec in run.plan}
    for task, limit in sorted(limits) if protocol.is_leaderboard else ():
        if STEP_LIMITS.get(task) != limit:
            yield f"the step limit of {task} is {limit}; the protocol has {STEP_LIMITS.get(task)}"


def _against_coverage(run: Run, protocol: Protocol, configs: Sequence[ConfigScore]) -> Iterator[str]:
    names = {score.config for score in configs}
    for config in protocol.configs.values():
        if config not in names:
            yield f"{config} was not run"
    if protocol.tasks not in (None, len(run.info.tasks)):
        yield f"{len(run.info.tasks)} of {protocol.tasks} tasks"
    wanted = protocol.trials_per_task or run.info.trials_per_task
    wrong = sorted({task.planned for score in configs for task in score.tasks} - {wanted * run.info.repeats})
    if wrong:
        yield f"{' or '.join(map(str, wrong))} trials per task; the protocol has {wanted}"
    for score in configs:
        if score.n_missing:
            verb = "trial is" if score.n_missing == 1 else "trials are"
            yield f"{score.n_missing} {verb} missing in {score.config}"


def _against_training(
    run: Run, protocol: Protocol, card: TrainingCard | None, configs: Sequence[ConfigScore]
) -> Iterator[str]:
    expected = {config: label for label, config in protocol.configs.items()} if protocol.is_leaderboard else {}
    for score in configs:
        if score.config in expected and score.label.text != expected[score.config]:
            yield f"the training data gives {score.label.text}, not {expected[score.config]}"
    if card is None:
        return
    yield from _scene_overlap(run, card)
    rule = protocol.training
    if rule is None:
        return
    episodes: dict[str, int] = {}
    for source in card.data:
        episodes[source.task] = episodes.get(source.task, 0) + source.episodes
        if source.assets != "official":
            yield f"trained on demonstrations with {source.assets} assets"
    counts = sorted(set(episodes.values()))
    if len(episodes) != rule.tasks or counts != [rule.episodes_per_task]:
        held = " or ".join(map(str, counts)) or "no"
        yield (
            f"trained on {held} demonstrations of each of {len(episodes)} tasks; the protocol has "
            f"{rule.episodes_per_task} of each of {rule.tasks}"
        )


def _scene_overlap(run: Run, card: TrainingCard) -> Iterator[str]:
    """Evaluation scenes that the checkpoint or an ancestor was trained on."""
    evaluated = {(spec.task, spec.config, spec.seed) for spec in run.plan}
    shared: set[tuple[str, str, int]] = set()
    for _, found in ancestry(card):
        if isinstance(found, TrainingCard):
            # Collection and evaluation draw other textures, but put the same objects in the same places.
            trained = {(source.task, source.config, seed) for source in found.data for seed in source.seeds}
            shared |= trained & evaluated
    if shared:
        task, config, seed = min(shared)
        yield f"{len(shared)} of the scenes were trained on, e.g. {task} {config} seed {seed}"
