"""Facts around the numbers, for the report page: failures by kind, seeds, where and how the run was made."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.aggregate.scores import Summary
from evalkit.core.record import TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.provenance.card import CARD_FILE
from evalkit.report.figures import seed_ranges
from evalkit.report.html_model import OUTCOMES
from evalkit.report.pipeline import training_facts
from evalkit.report.text import flatten
from evalkit.store.run import Run

Fact = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """The scenes of one task under one configuration."""

    task: str
    config: str
    count: int
    seeds: str
    digest: str
    """First digits of the accepted list's SHA-256."""


def pipeline_facts(summary: Summary) -> list[Fact]:
    """How the evaluated policy came to be."""
    policy = summary.policy
    if policy.checkpoint:
        digest = f" (sha256 {policy.checkpoint_digest[:12]})" if policy.checkpoint_digest else ""
        facts = [("checkpoint", f"{policy.checkpoint}{digest}")]
    else:
        facts = [("policy", f"{policy.adapter}, no checkpoint")]
    if summary.card:
        return facts + training_facts(summary.card)
    known = "unknown" if policy.checkpoint else "none recorded"
    return [*facts, ("training", f"{known}: no {CARD_FILE}")]


def label_facts(summary: Summary) -> list[Fact]:
    """Why each score carries its label."""
    return [(score.label.text, "; ".join(score.label.reasons)) for score in summary.configs]


def failures(run: Run, records: Mapping[str, TrialRecord], configs: Sequence[str]) -> dict[str, list[int]]:
    """Kind of end other than success -> number of trials under each configuration, most frequent first."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for spec in run.plan:
        kind = _failure_kind(records.get(spec.key))
        if kind:
            counts[kind][spec.config] += 1
    ordered = sorted(counts, key=lambda kind: (-counts[kind].total(), kind))
    return {kind: [counts[kind][config] for config in configs] for kind in ordered}


def _failure_kind(record: TrialRecord | None) -> str:
    if record is None:
        return OUTCOMES["not_run"]
    if record.outcome == "success":
        return ""
    kind = OUTCOMES[record.outcome]
    if record.outcome == "failure" and record.planner_failures:
        kind = f"{kind}, with actions whose plan failed"
    return f"{kind}: {record.error.kind}" if record.error else kind


def seed_rows(run: Run) -> list[SeedRow]:
    """The scenes of every task and configuration."""
    seeds: dict[tuple[str, str], list[TrialSpec]] = defaultdict(list)
    for spec in run.plan:
        seeds[spec.task, spec.config].append(spec)
    return [
        SeedRow(
            task=task,
            config=config,
            count=len({spec.seed for spec in specs}),
            seeds=seed_ranges([spec.seed for spec in specs]),
            digest=run.info.seed_lists.get(f"{task}/{config}", "")[:12],
        )
        for (task, config), specs in sorted(seeds.items())
    ]


def evaluation_facts(run: Run, summary: Summary) -> list[Fact]:
    """What was evaluated in which world by which rules."""
    policy, info = summary.policy, run.info
    facts = [
        ("run", info.run_id),
        ("started", info.created_at),
        ("protocol", f"{info.protocol}, {info.trials_per_task} trials per task, {info.repeats} of each scene"),
        *([("measured under", f"{summary.under}, not the leaderboard's")] if summary.under else []),
        *((f"rule: {name.replace('_', ' ')}", value) for name, value in summary.rules.items()),
        *(("not reproduced", line) for line in summary.not_reproduced),
        ("adapter", policy.adapter),
        ("policy", f"{policy.action_type} actions, {policy.execute_steps} executed per decision, on {policy.device}"),
        ("policy digest", policy.digest[:16]),
        ("instructions", ", ".join(f"{score.config} {score.split}" for score in summary.configs)),
    ]
    names = {"backend": "simulator", "code": "task code", "assets_digest": "assets digest"}
    facts += [
        (names.get(name, name), _plain(value)[:16] if name == "assets_digest" else _plain(value))
        for name, value in info.backend.items()
        if name != "semantics"
    ]
    return facts


def environment_facts(run: Run) -> list[Fact]:
    """The machine and the software, as the run recorded them."""
    facts = [("evalkit", run.info.evalkit_version)]
    facts += [(name.replace("_", " "), _plain(value)) for name, value in flatten(run.info.environment).items()]
    if run.info.command:
        command = run.info.command
        words = command if command[0] == "evalkit" else ("evalkit", *command)
        facts.append(("command", shlex.join(words)))
    return facts


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else ", ".join(map(str, value or ()))
