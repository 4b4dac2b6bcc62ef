"""Files of a sweep: ``summary.json``, ``leaderboard.csv`` with one row per checkpoint, ``report.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalkit.aggregate.proportions import Estimate
from evalkit.aggregate.sweep import Entry, SweepScores, score_sweep
from evalkit.core.files import write_atomic, write_json
from evalkit.report.export import LEADERBOARD_FILE, SUMMARY_FILE, to_csv
from evalkit.report.html import REPORT_FILE
from evalkit.report.rows import Row, checkpoint_row
from evalkit.report.sweep import fresh_command, remarks
from evalkit.report.sweep_page import write_sweep_page
from evalkit.report.text import percent
from evalkit.store.run import Run
from evalkit.store.sweep import SweepInfo, run_folder

SCHEMA = 1


def write_sweep_files(
    folder: Path, info: SweepInfo, runs: Sequence[Run], out: Path | None = None
) -> tuple[SweepScores, tuple[Path, ...]]:
    """Score a sweep and write its files.

    Args:
        folder: the sweep's folder.
        info: its manifest.
        runs: its runs.
        out: where to; the sweep's folder if None.

    Returns:
        The scores; paths of ``summary.json``, ``leaderboard.csv`` and ``report.html``.
    """
    target = folder if out is None else out
    target.mkdir(parents=True, exist_ok=True)
    scores = score_sweep(runs)
    paths = target / SUMMARY_FILE, target / LEADERBOARD_FILE
    write_json(paths[0], sweep_json(scores, info))
    write_atomic(paths[1], to_csv([sweep_row(entry, scores) for entry in scores.entries]))
    folders = [run_folder(folder, name) for name in info.runs]
    return scores, (*paths, write_sweep_page(scores, info, folders, target / REPORT_FILE))


def sweep_row(entry: Entry, scores: SweepScores) -> Row:
    """A checkpoint's row of ``leaderboard.csv``, with its difference to the best of the sweep in percentage points."""
    against = entry.against
    columns: Row = {"name": entry.name, "is_best": "yes" if entry.is_best else "no", "compared_by": scores.by}
    columns |= {
        "minus_best": percent(against.gap.value, 2) if against else "",
        "minus_best_low": percent(against.gap.low, 2) if against else "",
        "minus_best_high": percent(against.gap.high, 2) if against else "",
        "minus_best_joint_low": percent(against.joint_low, 2) if against else "",
        "minus_best_joint_high": percent(against.joint_high, 2) if against else "",
        "minus_best_p_holm": f"{against.p:.4g}" if against else "",
        "minus_best_pairs": str(against.gap.n_shared) if against else "",
    }
    return columns | checkpoint_row(entry.summary)


def sweep_json(scores: SweepScores, info: SweepInfo) -> dict[str, Any]:
    """The sweep as plain JSON values; rates are fractions from 0 to 1."""
    best = scores.best
    return {
        "schema": SCHEMA,
        "unit": "fraction",
        "sweep": info.sweep,
        "compared_by": scores.by,
        "best": best.name if best else None,
        "best_is_chosen_on_these_trials": True,
        "chosen_elsewhere": scores.chosen_elsewhere,
        "pairs_of_checkpoints": scores.pairs,
        "remarks": remarks(scores),
        "fresh_scenes": fresh_command(best) if best else None,
        "left_out": list(info.left_out),
        "failures": dict(info.failures),
        "checkpoints": [_checkpoint(entry, info) for entry in scores.entries],
    }


def _checkpoint(entry: Entry, info: SweepInfo) -> dict[str, Any]:
    summary, against = entry.summary, entry.against
    return {
        "name": entry.name,
        "step": entry.step,
        "run_id": summary.run_id,
        "checkpoint": summary.policy.checkpoint,
        "checkpoint_digest": summary.policy.checkpoint_digest,
        "policy_digest": summary.policy.digest,
        "status": summary.status,
        "configs": {
            score.config: {
                "label": score.label.text,
                "mean": _estimate(score.mean),
                "bounds": [score.bounds.low, score.bounds.high] if score.bounds else None,
                "trials": score.done,
                "planned": score.planned,
                "successes": score.successes,
            }
            for score in summary.configs
        },
        "average": _estimate(summary.average.mean) if summary.average else None,
        "is_best": entry.is_best,
        "minus_best": {
            "value": against.gap.value,
            "interval": [against.gap.low, against.gap.high],
            "joint_interval": [against.joint_low, against.joint_high],
            "p_holm": against.p,
            "test": against.gap.test.name,
            "paired_scenes": against.gap.n_shared,
        }
        if against
        else None,
        "not_leaderboard": list(summary.not_leaderboard),
    }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "method": estimate.method}
