"""``evalkit export``: a run as CSV and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.status import find_run

EXIT_INCOMPLETE = 1


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export")(export_command)


def export_command(
    run: Annotated[
        str | None, typer.Argument(help="A run's folder, or its name in results/runs. Default: the newest there.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to. Default: the run's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON instead of the table.")] = False,
) -> None:
    """Print a run's table and write summary.json, leaderboard.csv and leaderboard_tasks.csv.

    Exit code 0: every planned trial is scored; 1: trials are missing (the files say which).

    Example: evalkit export results/runs/20260102-house-0123abcd --out tables
    """
    from evalkit.aggregate.summary import summarise
    from evalkit.report.export import to_json, write_exports
    from evalkit.store.run import open_run

    found = open_run(find_run(run))
    summary = summarise(found)
    paths = write_exports(found, summary, out)
    if as_json:
        print(json.dumps(to_json(summary), indent=1))
    else:
        from rich.console import Console
        from rich.text import Text

        from evalkit.report.table import render, timing_line

        console = Console(highlight=False)
        console.print(render(summary))
        if summary.timing:
            console.print(timing_line(summary.timing))
        for path in paths:
            console.print(Text(f"wrote {path}", style="dim"), soft_wrap=True)
    if summary.status == "incomplete":
        raise typer.Exit(EXIT_INCOMPLETE)
