"""A run or a published table as one side of a comparison (imported results: ``evalkit.aggregate.imported``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalkit.aggregate.proportions import Bounds, Estimate
from evalkit.aggregate.published import CONFIGS, PublishedTable, training_text
from evalkit.aggregate.suite import Stratum, mean_estimate
from evalkit.aggregate.summary import summarise
from evalkit.aggregate.terms import run_terms, text_of
from evalkit.core.tasks import TASKS
from evalkit.core.trial import BackendFingerprint, TrialSpec
from evalkit.protocol.comparability import FIELDS, UNKNOWN, Fact, Terms
from evalkit.protocol.protocols import load_protocol
from evalkit.protocol.sheets import ProtocolSheet, load_sheet
from evalkit.store.info import PolicyInfo
from evalkit.store.run import Run

Scene = tuple[int, str, int]
"""Seed, instruction and step limit: equal in two runs of one world, they name the same trial for another policy."""


@dataclass(frozen=True, kw_only=True)
class ConfigSide:
    """One side under one configuration."""

    label: str
    why_label: str
    terms: Terms
    tasks: Mapping[str, Stratum]
    """Task -> trials; of the first repeat if there are several. Empty if only a mean is published."""
    scenes: Mapping[str, Mapping[Scene, bool]] | None
    """Task -> scene -> success; None where only rates are known."""
    mean: Estimate | None
    """Mean over the side's own tasks; None if a trial is missing or the number of trials isn't known."""
    bounds: Bounds | None
    """What a run's mean can still become, while trials are missing."""
    stated: float | None
    """Mean that a source prints without rates of tasks; a fraction."""
    n_tasks: int
    settings_digest: str
    """Of a run's task configuration; else empty."""
    checkpoint: str | None
    """What was evaluated: SHA-256 of the checkpoint, or the name a published table gives it. None if unknown."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A run, a published table, or imported results."""

    name: str
    kind: Literal["run", "published", "imported"]
    about: str
    """One line: the checkpoint, or the source."""
    protocol: str
    configs: Mapping[str, ConfigSide]
    policy: str
    """Names the policy: weights and how they are used, or a table's model. Equal on two sides: a reproduction."""
    average: Estimate | None
    """Mean of both configurations' means; None unless both have a mean."""
    facts: Mapping[str, str]
    """Facts of a run's world beyond the terms: what decides a scene and what may sway a policy."""
    physics: str
    """Digest of what decides a scene in a run; else empty."""
    stopped: str = ""
    """Why a run's number of trials depends on their outcomes, so that no fixed-size test holds; else empty."""
    notes: tuple[str, ...] = ()
    """What a reader must know before comparing, one line each."""


def run_side(run: Run, name: str | None = None) -> Side:
    """A run, finished or not, as a side.

    Raises:
        UserError: the run can't be summarised (see ``evalkit.aggregate.summary``).
    """
    summary = summarise(run)
    info = run.info
    outcomes = load_protocol(info.protocol).outcomes
    scenes: dict[str, dict[str, dict[Scene, bool]]] = defaultdict(lambda: defaultdict(dict))
    dropped: Counter[tuple[str, str]] = Counter()
    for record in run.records().values():
        counts_as, spec = outcomes[record.outcome], record.spec
        if spec.repeat == 0 and counts_as == "dropped":
            dropped[spec.task, spec.config] += 1
        elif spec.repeat == 0 and counts_as != "missing":
            scene = (spec.seed, spec.instruction, spec.horizon_steps)
            scenes[spec.config][spec.task][scene] = counts_as == "success"
    planned: dict[str, dict[str, list[TrialSpec]]] = defaultdict(lambda: defaultdict(list))
    for spec in run.plan:
        if spec.repeat == 0:
            planned[spec.config][spec.task].append(spec)
    configs = {}
    for score in summary.configs:
        found = scenes[score.config]
        tasks = {
            task: Stratum(
                sum(found[task].values()),
                len(found[task]),
                len(specs) - len(found[task]) - dropped[task, score.config],
            )
            for task, specs in planned[score.config].items()
        }
        configs[score.config] = ConfigSide(
            label=score.label.text,
            why_label="; ".join(score.label.reasons),
            terms=run_terms(run, score.config, summary.card),
            tasks=tasks,
            scenes={task: dict(found[task]) for task in tasks},
            mean=score.mean,
            bounds=score.bounds,
            stated=None,
            n_tasks=len(tasks),
            settings_digest=score.digest,
            checkpoint=evaluated(info.policy),
        )
    policy = info.policy
    return Side(
        name=name or run.folder.name,
        kind="run",
        about=_about(policy),
        protocol=info.protocol,
        configs=configs,
        policy=f"{policy.checkpoint_digest or policy.digest} {policy.execute_steps} {policy.action_type}",
        average=summary.average.mean if summary.average else None,
        facts=_world(run) | {"policy device": policy.device},
        physics=BackendFingerprint(**info.backend).physics_digest,
        stopped=summary.stopping,
    )


def published_side(table: PublishedTable) -> Side:
    """A published table as a side."""
    sheet = load_sheet(table.protocol) if table.protocol else None
    configs = {}
    for config in CONFIGS:
        tasks = table.strata(config)
        printed = table.stated_mean(config)
        if not tasks and printed is None:
            continue
        partial = bool(tasks) and len(tasks) < len(TASKS) and printed is not None
        configs[config] = ConfigSide(
            label=table.label(config),
            why_label=f"trained on {training_text(table.training)}",
            terms=_published_terms(table, sheet, config, len(TASKS) if partial or not tasks else len(tasks)),
            tasks=tasks,
            scenes=None,
            mean=mean_estimate(list(tasks.values())) if tasks and not partial else None,
            bounds=None,
            stated=float(printed.percent) / 100 if printed else None,
            n_tasks=len(TASKS) if partial or not tasks else len(tasks),
            settings_digest="",
            checkpoint=table.name,
        )
    return Side(
        name=table.name,
        kind="published",
        about=table.source,
        protocol=table.protocol or "",
        configs=configs,
        policy=table.key,
        average=_average(configs),
        facts={},
        physics="",
    )


def evaluated(policy: PolicyInfo) -> str | None:
    """What a run evaluated: the checkpoint's SHA-256; the policy's where there is no checkpoint; None if unknown."""
    return policy.checkpoint_digest if policy.checkpoint else policy.digest


def _about(policy: PolicyInfo) -> str:
    if policy.checkpoint is None:
        return f"policy {policy.adapter}, no checkpoint"
    path = "/".join(Path(policy.checkpoint).parts[-2:])
    digest = f", sha256 {policy.checkpoint_digest[:12]}" if policy.checkpoint_digest else ""
    return f"policy {policy.adapter}, checkpoint {path}{digest}"


def _average(configs: Mapping[str, ConfigSide]) -> Estimate | None:
    if any(config not in configs or configs[config].mean is None for config in CONFIGS):
        return None
    tasks = [configs[config].tasks for config in CONFIGS]
    same = tasks[0].keys() == tasks[1].keys()
    return mean_estimate([stratum for of_config in tasks for stratum in of_config.values()]) if same else None


def _published_terms(table: PublishedTable, sheet: ProtocolSheet | None, config: str, tasks: int) -> Terms:
    trials = UNKNOWN if table.trials_per_task is None else str(table.trials_per_task)
    changes: dict[str, Fact] = {"training": table.training, "tasks": str(tasks), "trials_per_task": trials}
    if sheet is not None and config in sheet.configs:
        return sheet.terms(config, **changes)
    # Nobody publishes scores on generated assets but evalkit.
    facts: dict[str, Fact] = dict.fromkeys(FIELDS, UNKNOWN)
    facts |= {"config": config, "assets": "official", **changes}
    return Terms(protocol="not stated", **facts)


def _world(run: Run) -> dict[str, str]:
    backend = run.info.backend
    return {
        name: text_of(backend.get(name)) for name in ("backend", "assets_digest", "planner", "physics", "semantics")
    }
