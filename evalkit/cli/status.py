"""``evalkit status``: how far a run is."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from evalkit.aggregate.scores import Summary, TaskScore
    from evalkit.store.run import Run

RUNS_FOLDER = Path("results/runs")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("status")(status_command)


def status_command(
    run: Annotated[
        str | None, typer.Argument(help="A run's folder, or its name in results/runs. Default: the newest there.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state as JSON.")] = False,
) -> None:
    """Show how far a run is: trials done, success rate so far with its 95 % interval, and errors.

    Of a folder that evalkit run --until-decided made, show which side is better, as far as that is known. Of a sweep
    (several checkpoints), its table.

    Example: evalkit status results/runs/20260102-house-0123abcd
    """
    from evalkit.aggregate.summary import summarise
    from evalkit.cli.sweep_show import is_sweep, show_status
    from evalkit.store.run import DECISION_FILE, open_run

    folder = find_run(run)
    if (folder / DECISION_FILE).exists():
        _show_decision(folder, as_json=as_json)
        return
    if is_sweep(folder):
        show_status(folder, as_json=as_json)
        return
    found = open_run(folder)
    summary = summarise(found)
    if as_json:
        print(json.dumps(to_json(found, summary), indent=1))
        return
    _print(found, summary)


def find_run(name: str | None, runs: Path = RUNS_FOLDER) -> Path:
    """Folder of a run, or of a sweep by its name.

    Args:
        name: a folder, the name of one in ``runs`` or of a sweep, or None for the newest in ``runs``.
        runs: folder of runs.

    Raises:
        UserError: there is none.
        UnknownNameError: ``name`` is neither a folder nor a run in ``runs``.
    """
    from evalkit.cli.sweep_show import known_sweeps
    from evalkit.core.errors import UnknownNameError, UserError
    from evalkit.store.run import RUN_FILE, TRIALS_FILE

    known = {path.parent.name: path for path in runs.glob(f"*/{RUN_FILE}")}
    if name is None:
        if not known:
            raise UserError(f"no run in {runs}: name a run's folder")

        def changed_at(run_file: Path) -> float:
            trials = run_file.with_name(TRIALS_FILE)
            return (trials if trials.exists() else run_file).stat().st_mtime

        return max(known.values(), key=lambda path: (changed_at(path), path)).parent
    if Path(name).is_dir():
        return Path(name)
    if name in known:
        return known[name].parent
    if name in (sweeps := known_sweeps()):
        return sweeps[name]
    if not known:
        raise UserError(f"{name} isn't a folder, and there is no run in {runs}")
    raise UnknownNameError(f"run (no such folder, and none of that name in {runs})", name, known)


def to_json(run: Run, summary: Summary) -> dict[str, Any]:
    """The state as plain values; rates are fractions."""
    return {
        "run_id": summary.run_id,
        "folder": str(run.folder),
        "finished": run.is_done,
        "stopping": summary.stopping,
        "planned": sum(score.planned for score in summary.configs),
        "scored": sum(score.done for score in summary.configs),
        "not_run": len(run.remaining()),
        "trials_per_hour": _trials_per_hour(summary),
        "errors": dict(summary.errors),
        "every_attempt_failed": quarantined(summary),
        "configs": {
            score.config: {
                "label": score.label.text,
                "status": score.status,
                "tasks": {
                    task.task: {
                        "planned": task.planned,
                        "scored": task.done,
                        "successes": task.successes,
                        "policy_errors": task.policy_errors,
                    }
                    for task in score.tasks
                },
            }
            for score in summary.configs
        },
    }


def _show_decision(folder: Path, *, as_json: bool) -> None:
    from evalkit.report.choice import open_decision, render
    from evalkit.report.choice import to_json as decision_json

    choice, runs = open_decision(folder)
    if as_json:
        print(json.dumps(decision_json(choice, runs), indent=1))
        return
    from rich.console import Console

    Console(highlight=False).print(render(choice, [run.info for run in runs]))


def _trials_per_hour(summary: Summary) -> float | None:
    timing = summary.timing
    return round(3600 * timing.n / timing.active_s, 1) if timing and timing.active_s > 0 else None


def _print(run: Run, summary: Summary) -> None:
    from rich.console import Console
    from rich.text import Text

    from evalkit.report.table import RETRY_HINT
    from evalkit.report.text import count, duration, percent

    console = Console(highlight=False)
    planned, scored = (sum(getattr(score, name) for score in summary.configs) for name in ("planned", "done"))
    left = len(run.remaining())
    console.print(Text(f"run {summary.run_id}", style="bold"), Text(str(run.folder), style="dim"))
    share = f" ({percent(scored / planned, 1)} %)" if planned else ""
    console.print(Text(f"{count(scored)} of {count(planned)} trials scored{share}, {count(left)} not run"))
    per_hour = _trials_per_hour(summary)
    if per_hour:
        rest = f", about {duration(3600 * left / per_hour)} of work left" if left else ""
        console.print(Text(f"{per_hour:,.0f} trials per hour{rest}"))
    console.print()
    console.print(_table(summary))
    for kind, number in summary.errors.items():
        console.print(Text(f"{number} x {kind}", style="red"))
    if trials := quarantined(summary):
        named = [f"{trial['task']} {trial['config']} seed {trial['seed']} ({trial['why']})" for trial in trials[:6]]
        more = f" and {len(trials) - 6} more" if len(trials) > 6 else ""
        console.print(Text(f"every attempt failed: {', '.join(named)}{more}", style="red"))
        console.print(Text(f"to try these again: {RETRY_HINT}", style="red"))
    console.print()
    if summary.stopping:
        console.print(Text(summary.stopping, style="yellow"))
        console.print(Text(f"the decision: evalkit status {shlex.quote(str(run.folder.resolve().parent))}"))
    elif run.is_done:
        console.print(Text(f"finished: evalkit export {shlex.quote(str(run.folder))}"))
    elif run.info.command:
        console.print(Text(f"not finished; the same command goes on with it: {shlex.join(run.info.command)}"))
    else:
        console.print(Text("not finished; the same command goes on with it"))


def quarantined(summary: Summary) -> list[dict[str, Any]]:
    """Trials that used up their attempts: task, configuration, seed, repeat, and why."""
    return [
        {"task": task.task, "config": task.config, "seed": trial.seed, "repeat": trial.repeat, "why": trial.why}
        for score in summary.configs
        for task in score.tasks
        for trial in task.missing
        if trial.why != "not run"
    ]


def _table(summary: Summary) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("task", no_wrap=True)
    tasks = [{task.task: task for task in score.tasks} for score in summary.configs]
    width = max((len(_progress(task)) for by_name in tasks for task in by_name.values()), default=0)
    for score in summary.configs:
        table.add_column(Text(f"{score.label.text}  {score.config}", style="cyan"), no_wrap=True)
    for name in sorted(set().union(*tasks)):
        cells = (
            Text(_cell(by_name[name], width, rate=not summary.stopping) if name in by_name else "") for by_name in tasks
        )
        table.add_row(Text(name), *cells)
    return table


def _progress(task: TaskScore) -> str:
    return f"{task.done}/{task.planned}"


def _cell(task: TaskScore, width: int, *, rate: bool) -> str:
    """Progress, and the rate so far with its interval; the mere successes of a run that has no rates."""
    from evalkit.aggregate.proportions import estimate
    from evalkit.report.text import percent

    progress = f"{_progress(task):>{width}}"
    if not rate:
        return f"{progress}  {task.successes} succeeded"
    now = estimate(task.successes, task.done)
    if now is None:
        return progress
    return f"{progress}  {percent(now.value, 0):>3} % ({percent(now.low, 0)}–{percent(now.high, 0)})"
