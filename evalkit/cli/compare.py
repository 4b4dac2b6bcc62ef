"""``evalkit compare``: runs against each other and against published scores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evalkit.cli.status import find_run

if TYPE_CHECKING:
    from pathlib import Path

    from evalkit.aggregate.sides import Side

_PER_TASK_PAIRS = 3
"""With more pairs the tables of tasks are left out, unless asked for."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compare")(compare_command)


def compare_command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="Folders of runs, or their names in results/runs; or files that evalkit import --out wrote.",
        ),
    ] = None,
    with_: Annotated[
        str | None,
        typer.Option(
            "--with", help="Published models or tables, e.g. x-wam,pi0.5 or x-wam@paper; leaderboard for all."
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="Show where each side departs from this protocol. Without --with: its published tables too."),
    ] = None,
    per_task: Annotated[
        bool | None, typer.Option("--per-task/--no-per-task", help="Tables of tasks. Default: for up to three pairs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare runs with each other and with published scores: what differs, what may be compared, and by how much.

    The first run is compared with the others, and every run with every published table. Without a run, the first table
    is compared with the others. Imported results of other tools count as runs.

    Example: evalkit compare results/runs/a results/runs/b --with x-wam,pi0.5 --protocol x-wam
    """
    from evalkit.aggregate.compare import against_protocol, compare
    from evalkit.aggregate.line_up import line_ups, repeated
    from evalkit.protocol.sheets import load_sheet

    sheet = load_sheet(protocol) if protocol else None
    ours, tables = _runs(runs or []), _tables(with_, protocol)
    sides = [*ours, *tables]
    comparisons = [compare(first, second) for first, second in _pairs(ours, tables)]
    ups, spreads = line_ups(sides), repeated(ours)
    departures = {side.name: against_protocol(side, sheet) for side in sides} if sheet else {}
    if as_json:
        from evalkit.report.compare_json import to_json

        print(json.dumps(to_json(sides, comparisons, ups, spreads, protocol, departures), indent=1))
        return

    from rich.console import Console

    from evalkit.report.compare import (
        label_notes,
        render_departures,
        render_line_up,
        render_pair,
        sides_table,
        spread_line,
    )

    console = Console(highlight=False)
    console.print(sides_table(sides))
    for note in label_notes(sides):
        console.print(note)
    if protocol:
        console.print()
        console.print(render_departures(departures, protocol))
    show_tasks = len(comparisons) <= _PER_TASK_PAIRS if per_task is None else per_task
    for comparison in comparisons:
        console.print()
        console.print(render_pair(comparison, per_task=show_tasks))
    for spread in spreads:
        console.print(spread_line(spread))
    for up in ups:
        console.print(render_line_up(up))
        console.print()


def _runs(names: list[str]) -> list[Side]:
    from dataclasses import replace
    from pathlib import Path

    from evalkit.cli.sweep_show import is_sweep, runs_of
    from evalkit.core.errors import UserError

    named = [Path(name) if Path(name).is_file() else find_run(name) for name in names]
    paths = [path for found in named for path in (runs_of(found) if is_sweep(found) else [found])]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UserError("a run is named twice: compare it with another one")
    sides = [_side(path) for path in paths]
    twice = len({side.name for side in sides}) < len(sides)
    return [replace(side, name=str(path)) for side, path in zip(sides, paths, strict=True)] if twice else sides


def _side(path: Path) -> Side:
    if path.is_file():
        from evalkit.aggregate.imported import imported_side
        from evalkit.store.foreign.written import read_written

        return imported_side(read_written(path), path.name)
    from evalkit.aggregate.sides import run_side
    from evalkit.store.run import open_run

    return run_side(open_run(path))


def _tables(names: str | None, protocol: str | None) -> list[Side]:
    from evalkit.aggregate.published import find_tables, load_tables
    from evalkit.aggregate.sides import published_side
    from evalkit.core.errors import UserError

    tables = load_tables()
    if names is None:
        found = [table for table in tables if protocol and protocol != "leaderboard" and table.protocol == protocol]
    else:
        listed = [name.strip() for name in names.split(",") if name.strip()]
        if not listed:
            raise UserError("--with names nothing: give models, e.g. --with x-wam,pi0.5 (evalkit published list)")
        found = [table for name in listed for table in find_tables(name, tables)]
    return [published_side(table) for table in {table.name: table for table in found}.values()]


def _pairs(ours: list[Side], tables: list[Side]) -> list[tuple[Side, Side]]:
    from evalkit.core.errors import UserError

    if not ours:
        if len(tables) < 2:
            raise UserError("nothing to compare: name a run, or two published tables or more with --with")
        return [(tables[0], other) for other in tables[1:]]
    pairs = [(ours[0], other) for other in ours[1:]] + [(run, table) for run in ours for table in tables]
    if not pairs:
        raise UserError(
            "one run alone has nothing to be compared with: name another one, or published scores by --with"
        )
    return pairs
