"""A run for papers and notebooks: Markdown, LaTeX, and a Parquet file of all trials."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalkit.aggregate.proportions import Bounds, Estimate
from evalkit.aggregate.scores import ConfigScore, Summary
from evalkit.core.files import atomic_path
from evalkit.report.text import percent
from evalkit.store.run import Run

Escape = Callable[[str], str]

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_"},
}
_LATEX_SPECIAL = re.compile(r"[\\{}~^&%$#_]")
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]#|<>~])")


def to_markdown(summary: Summary) -> str:
    """Headline, what limits it, and one row per task, as GitHub's Markdown."""
    lines = [f"# {escape_markdown(summary.run_id)}", "", *_markdown_table(_headline(summary), escape_markdown), ""]
    lines += [f"- {escape_markdown(line)}" for line in caveats(summary)]
    lines += ["", *_markdown_table(_tasks(summary), escape_markdown), ""]
    lines.append("Rates in percent; brackets are 95 % intervals.")
    return "\n".join(lines) + "\n"


def to_latex(summary: Summary) -> str:
    r"""One row per task and the means, as a ``tabular`` for ``\input``; it needs the package booktabs."""
    header, *rows, mean = _tasks(summary)
    comments = [f"evalkit {summary.evalkit_version}, run {summary.run_id}", *caveats(summary)]
    lines = [f"% {_one_line(comment)}" for comment in comments]
    lines += [f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule", _latex_row(header), r"\midrule"]
    lines += [_latex_row(row) for row in rows]
    lines += [r"\midrule", _latex_row(mean), r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def caveats(summary: Summary) -> list[str]:
    """What has to stand beside the numbers, one line each: labels with reasons, assets, why it isn't for the board."""
    reasons: dict[tuple[str, ...], list[str]] = {}
    for score in summary.configs:
        reasons.setdefault(score.label.reasons, []).append(score.label.text)
    lines = [f"{', '.join(labels)}: {'; '.join(why)}" for why, labels in reasons.items()]
    lines.append(f"assets: {summary.backend.get('assets')}")
    if summary.under:
        lines.append(f"protocol: {summary.under}, not the leaderboard's")
    lines += [f"not reproduced: {line}" for line in summary.not_reproduced]
    return lines + [f"not a leaderboard number: {reason}" for reason in summary.not_leaderboard]


def trial_table(run: Run, summary: Summary) -> dict[str, list[Any]]:
    """All planned trials as columns, in plan order; a trial that wasn't run has outcome None."""
    labels = {score.config: score.label.text for score in summary.configs}
    records = run.records()
    rows = []
    for spec in run.plan:
        record = records.get(spec.key)
        row = {"run_id": summary.run_id, "key": spec.key, "label": labels[spec.config], **asdict(spec)}
        row["assets"] = str(summary.backend.get("assets"))
        row["outcome"] = str(record.outcome) if record else None
        for name in ("steps", "policy_calls", "success_step", "planner_failures", "attempts", "state_digest"):
            row[name] = getattr(record, name) if record else None
        timings = asdict(record.timings) if record else {}
        row |= {name: timings.get(name) for name in _TIMES}
        row["error_kind"] = record.error.kind if record and record.error else None
        row["error_message"] = record.error.message if record and record.error else None
        row |= {name: getattr(record, name) if record else None for name in ("worker", "node", "started_at")}
        row["media"] = list(record.media) if record else None
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def write_parquet(run: Run, summary: Summary, path: Path) -> None:
    """Write ``trial_table`` as Parquet."""
    import pandas as pd  # here, so that the other formats don't wait for it

    frame = pd.DataFrame(trial_table(run, summary))
    whole = {name: "Int64" for name in _WHOLE_NUMBERS if name in frame}  # whole numbers that may be missing
    with atomic_path(path) as temporary:
        frame.astype(whole).to_parquet(temporary, index=False)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", _one_line(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def escape_latex(text: str) -> str:
    """Text that LaTeX shows as it is, on one line."""
    return _LATEX_SPECIAL.sub(lambda match: _LATEX[match[0]], _one_line(text))


_TIMES = ("setup_s", "physics_s", "check_s", "render_s", "expert_s", "inference_s", "queue_s", "wall_s")
_WHOLE_NUMBERS = ("steps", "policy_calls", "success_step", "planner_failures", "attempts")


def _headline(summary: Summary) -> list[list[str]]:
    rows = [["score", "%", "95 %", "status", "coverage"]]
    for score in summary.configs:
        name = f"{score.label.text} ({score.config})"
        rows.append([name, *_mean(score.mean, score.bounds), score.status, score.coverage])
    if summary.average:
        average = summary.average
        name = f"{'average' if average.score else 'mean of both'} {average.name}"
        rows.append([name, *_mean(average.mean, average.bounds), summary.status, ""])
    return rows


def _tasks(summary: Summary) -> list[list[str]]:
    """Header, one row per task, and the means."""
    header = ["task"]
    for score in summary.configs:
        header += [f"{score.label.text} %", "95 %", "k/n"]
    by_config = [{task.task: task for task in score.tasks} for score in summary.configs]
    rows = []
    for name in sorted({task for tasks in by_config for task in tasks}):
        row = [name]
        for tasks in by_config:
            task = tasks.get(name)
            row += (
                [*_mean(task.estimate, task.bounds), f"{task.successes}/{task.done}"] if task else ["", "", "not run"]
            )
        rows.append(row)
    mean = [f"mean of {len(rows)} tasks"]
    for score in summary.configs:
        mean += [*_mean(score.mean, score.bounds), _status(score)]
    return [header, *rows, mean]


def _mean(mean: Estimate | None, bounds: Bounds | None) -> tuple[str, str]:
    if mean:
        return percent(mean.value, 1), f"[{percent(mean.low, 1)}, {percent(mean.high, 1)}]"
    if bounds:
        return "?", f"can become {percent(bounds.low, 1)} to {percent(bounds.high, 1)}"
    return "?", ""


def _status(score: ConfigScore) -> str:
    return "" if score.status == "complete" else score.status


def _markdown_table(rows: list[list[str]], escape: Escape) -> list[str]:
    lines = [f"| {' | '.join(map(escape, row))} |" for row in rows]
    lines.insert(1, f"|---|{'---:|' * (len(rows[0]) - 1)}")
    return lines


def _latex_row(cells: list[str]) -> str:
    return " & ".join(map(escape_latex, cells)) + r" \\"


def _one_line(text: str) -> str:
    return " ".join(text.split())
