"""``evalkit export``: a run as tables and files for other programs."""

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
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="A run's folder, or its name in results/runs; default: the newest there. Two runs of one checkpoint, "
            "under demo_clean and under demo_randomized, are put together.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to. Default: the run's own.")] = None,
    formats: Annotated[
        str,
        typer.Option("--format", help="What to write: some of csv,json,markdown,latex,parquet,official."),
    ] = "csv,json",
    name: Annotated[str, typer.Option(help="Name of the method on the official board (official).")] = "",
    slug: Annotated[
        str | None, typer.Option(help="Last part of the entry's id (official). Default: made from --name.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="cotrain or sft (official). Default: as the training card says."),
    ] = None,
    contributor: Annotated[str, typer.Option(help="Who made the numbers, for the official board (official).")] = "",
    listed_at: Annotated[str | None, typer.Option(help="Date for the board as YY.MM.DD. Default: today.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON instead of the table.")] = False,
) -> None:
    """Print a run's table and write it as files: summary.json, leaderboard.csv, leaderboard_tasks.csv, or others.

    Of a sweep, its summary.json, leaderboard.csv with a row per checkpoint, and report.html.

    Halves of an average that come from two runs must have evaluated the same checkpoint, in the same world.

    The official board's entry is refused for anything that isn't a leaderboard result, and then nothing is written.

    Exit code 0: every planned trial is scored; 1: trials are missing (the files say which).

    Example: evalkit export results/runs/20260102-house-0123abcd --format csv,markdown,parquet --out tables
    """
    from evalkit.aggregate.joined import join
    from evalkit.aggregate.summary import summarise
    from evalkit.cli.sweep_show import export_sweep, is_sweep
    from evalkit.core.errors import UserError
    from evalkit.report.export import to_json
    from evalkit.report.formats import OFFICIAL, parse_formats, write_entry, write_formats
    from evalkit.store.run import open_run

    wanted = parse_formats(formats)
    names: list[str | None] = [*runs] if runs else [None]
    folders = [find_run(name) for name in names]
    if len(folders) == 1 and is_sweep(folders[0]):
        scores = export_sweep(folders[0], wanted, out, as_json=as_json)
        if scores.incomplete:
            raise typer.Exit(EXIT_INCOMPLETE)
        return
    if len(folders) > 1 and out is None:
        raise UserError(f"{len(folders)} runs have no folder in common: give --out")
    found = join([open_run(folder) for folder in folders])
    summary = summarise(found)
    entry = None
    if OFFICIAL in wanted:
        from datetime import UTC, datetime

        from evalkit.report.official import official_entry

        date = listed_at or datetime.now(UTC).strftime("%y.%m.%d")
        entry = official_entry(summary, name=name, contributor=contributor, listed_at=date, slug=slug, setting=setting)
    paths = write_formats(found, summary, [form for form in wanted if form != OFFICIAL], out)
    if entry:
        paths += (write_entry(entry, out or found.folder),)
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
