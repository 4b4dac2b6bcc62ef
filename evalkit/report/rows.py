"""The columns of the exported tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.aggregate.proportions import Bounds, Estimate, clopper_pearson
from evalkit.aggregate.scores import ConfigScore, Summary, TaskScore
from evalkit.core.hashing import canonical_json, digest
from evalkit.protocol.labels import ancestry
from evalkit.protocol.protocols import LEADERBOARD, load_protocol
from evalkit.provenance.card import TrainingCard
from evalkit.report.text import flatten, percent, rounded

Row = dict[str, str]
"""Column -> text; an empty cell is a value that doesn't exist."""


def checkpoint_row(summary: Summary) -> Row:
    """The row of ``leaderboard.csv``: scores in percent, what they were measured on, how the policy came to be.

    ``c2c``, ``c2r`` and ``average`` are filled only if the configuration is complete and the training data allows the
    name. Everything else measured stands under the configuration's own name.
    """
    board = load_protocol(LEADERBOARD)  # its names head the columns; under other protocols they stay empty
    policy = summary.policy
    row: Row = {
        "checkpoint": policy.checkpoint or "",
        "step": _plain(policy.step),
        "adapter": policy.adapter,
        "unit": "percent",
    }
    row |= _headline(summary, board.configs)
    row |= {
        "status": summary.status,
        "label": "+".join(score.label.text for score in summary.configs),
        "label_reasons": _joined(dict.fromkeys(line for score in summary.configs for line in score.label.reasons)),
        "assets": _plain(summary.backend.get("assets")),
        "leaderboard_entry": "no" if summary.not_leaderboard else "yes",
        "not_leaderboard_because": _joined(summary.not_leaderboard),
        "protocol": summary.protocol,
        "bug_compatible": _plain("bug-compatible" in summary.under),
        "not_reproduced": _joined(summary.not_reproduced),
        "tasks": str(max((len(score.tasks) for score in summary.configs), default=0)),
        "trials_per_task": str(summary.trials_per_task),
        "repeats": str(summary.repeats),
    }
    by_name = {score.config: score for score in summary.configs}
    for config in dict.fromkeys([*board.configs.values(), *by_name]):
        row |= _config_columns(config, by_name.get(config))
    row |= _average_columns(summary)
    row |= {
        "checkpoint_digest": policy.checkpoint_digest or "",
        "policy_digest": policy.digest,
        "action_type": policy.action_type,
        "execute_steps": str(policy.execute_steps),
        "policy_device": policy.device,
        "privileged": _plain(policy.privileged),
    }
    row |= {f"backend_{name}": _plain(value) for name, value in summary.backend.items() if name != "assets"}
    row |= {
        "renderer": row.pop("backend_renderer", ""),
        "backend_digest": summary.backend_digest,
        "run_id": summary.run_id,
        "evalkit_version": summary.evalkit_version,
    }
    return row | training_columns(summary.card)


def task_rows(summary: Summary) -> list[Row]:
    """The rows of ``leaderboard_tasks.csv``, in the order of configurations and task names."""
    return [_task_row(summary, score, task) for score in summary.configs for task in score.tasks]


def training_columns(card: TrainingCard | None) -> Row:
    """How the checkpoint came to be, flat; settings of the recipe under ``recipe_<name>``."""
    if card is None:
        return {"train_policy": ""}
    data = card.data
    parent = card.parent
    row = {
        "train_policy": card.policy,
        "train_data_configs": _joined(sorted({source.config for source in data})),
        "train_data_assets": _joined(sorted({source.assets for source in data})),
        "train_tasks": str(len({source.task for source in data})),
        "train_task_names": _joined(sorted({source.task for source in data})),
        "train_episodes": str(sum(source.episodes for source in data)),
        "train_clips": str(sum(source.clips for source in data)),
        "train_data_digest": digest([(source.task, source.config, source.digest) for source in data]),
        "train_normalisation_digest": card.normalisation_digest,
        "initial_weights": card.initial_weights,
        "parent": parent.path if parent else "",
        "parent_digest": parent.digest if parent else "",
        "ancestors": _joined(who for who, _ in list(ancestry(card))[1:]),
        "train_step": str(card.step),
        "train_samples_seen": str(card.samples_seen),
        "train_world_size": str(card.world_size),
        "train_device": card.device,
        "train_wall_s": rounded(card.wall_s, 1),
        "train_seconds_per_step": rounded(card.seconds_per_step, 4),
        "final_loss": rounded(card.losses[-1][1], 6) if card.losses else "",
        "parameters": str(card.parameters),
        "train_code_commit": card.code_commit,
        "train_code_dirty": _plain(card.code_dirty),
        "train_evalkit_version": card.evalkit_version,
        "train_created_at": card.created_at,
        "train_notes": _joined(card.notes),
    }
    return row | {f"recipe_{name}": _plain(value) for name, value in sorted(flatten(card.recipe).items())}


def _headline(summary: Summary, configs: Mapping[str, str]) -> Row:
    """Columns ``c2c``, ``c2r`` and ``average``: a number goes under a name only if its training data earns the name."""
    row: Row = {}
    earned = 0
    for name, config in configs.items():
        score = next((score for score in summary.configs if score.config == config), None)
        fits = score is not None and score.label.text == name
        row |= _estimate_columns(name, score.score if score and fits else None)
        earned += fits
    average = summary.average.score if summary.average and earned == len(configs) else None
    return row | _estimate_columns("average", average)


def _config_columns(config: str, score: ConfigScore | None) -> Row:
    values = {
        "label": score.label.text if score else "",
        "status": score.status if score else "not run",
        "coverage": score.coverage if score else "",
        "instruction_split": score.split if score else "",
        "tasks": str(len(score.tasks)) if score else "",
        "trials_planned": str(score.planned) if score else "",
        "trials_done": str(score.done) if score else "",
        "successes": str(score.successes) if score else "",
        "policy_errors": str(score.policy_errors) if score else "",
        "dropped": str(score.dropped) if score else "",
        "missing": str(score.n_missing) if score else "",
    }
    row = {f"{config}_{name}": value for name, value in values.items()}
    row |= _estimate_columns(f"{config}_score", score.score if score else None)
    row |= _estimate_columns(f"{config}_partial_mean", score.partial_mean if score else None)
    row |= _bound_columns(config, score.bounds if score else None)
    row[f"{config}_config_digest"] = score.digest if score else ""
    return row


def _average_columns(summary: Summary) -> Row:
    average = summary.average
    row = {"average_of": average.name if average else ""}
    row |= _estimate_columns("average_score", average.score if average else None)
    row |= _estimate_columns("average_partial_mean", average.partial_mean if average else None)
    return row | _bound_columns("average", average.bounds if average else None)


def _task_row(summary: Summary, score: ConfigScore, task: TaskScore) -> Row:
    exact = clopper_pearson(task.successes, task.done) if task.estimate else None
    row = {
        "checkpoint": summary.policy.checkpoint or "",
        "step": _plain(summary.policy.step),
        "adapter": summary.policy.adapter,
        "task": task.task,
        "config": task.config,
        "label": score.label.text,
        "protocol": summary.protocol,
        "unit": "percent",
        "trials_planned": str(task.planned),
        "trials_done": str(task.done),
        "successes": str(task.successes),
        "failures": str(task.failures),
        "policy_errors": str(task.policy_errors),
        "dropped": str(task.dropped),
        "missing": str(len(task.missing)),
        "missing_seeds": _joined(dict.fromkeys(str(trial.seed) for trial in task.missing)),
    }
    row |= _estimate_columns("rate", task.estimate)
    row |= {
        "rate_exact_low": percent(exact[0], 2) if exact else "",
        "rate_exact_high": percent(exact[1], 2) if exact else "",
    }
    row |= _bound_columns("rate", task.bounds)
    return row | {
        "assets": _plain(summary.backend.get("assets")),
        "instruction_split": score.split,
        "step_limit": str(task.step_limit),
        "seeds_digest": task.seeds_digest,
        "config_digest": score.digest,
        "policy_digest": summary.policy.digest,
        "backend_digest": summary.backend_digest,
        "run_id": summary.run_id,
    }


def _estimate_columns(name: str, estimate: Estimate | None) -> Row:
    return {
        name: percent(estimate.value, 2) if estimate else "",
        f"{name}_low": percent(estimate.low, 2) if estimate else "",
        f"{name}_high": percent(estimate.high, 2) if estimate else "",
    }


def _bound_columns(name: str, bounds: Bounds | None) -> Row:
    return {
        f"{name}_if_missing_fail": percent(bounds.low, 2) if bounds else "",
        f"{name}_if_missing_succeed": percent(bounds.high, 2) if bounds else "",
    }


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return canonical_json(value)


def _joined(values: Any) -> str:
    return "; ".join(values)
