"""``evalkit drill``: does the harness survive, on this machine, what goes wrong in labs?"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from evalkit.drill.row import Row
    from evalkit.drill.same_outcomes import Stage, Way

EXIT_FAILED = 1


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("drill")(drill_command)


def drill_command(
    only: Annotated[str | None, typer.Option(help="Comma-separated kinds of fault, as --list names them.")] = None,
    list_kinds: Annotated[bool, typer.Option("--list", help="List the faults and exit.")] = False,
    faults: Annotated[
        Path | None, typer.Option(help="Play the faults of a file instead (docs/reliability.md says how to write one).")
    ] = None,
    same_outcomes: Annotated[
        bool,
        typer.Option(
            "--same-outcomes",
            help="Instead of faults: one plan in this process, by 1, 2 and 4 workers and after three random kills, "
            "compared trial by trial.",
        ),
    ] = False,
    backend: Annotated[str, typer.Option(help="With --same-outcomes: fake, or robotwin.")] = "fake",
    policy: Annotated[str | None, typer.Option(help="With --same-outcomes: a policy; replay if none is named.")] = None,
    ckpt: Annotated[str | None, typer.Option(help="With --same-outcomes: a checkpoint instead.")] = None,
    tasks: Annotated[str, typer.Option(help="With --same-outcomes.")] = "click_bell,grab_roller,shake_bottle",
    trials: Annotated[int, typer.Option(min=1, help="With --same-outcomes: per task.")] = 4,
    mode: Annotated[str, typer.Option(help="With --same-outcomes: c2c, c2r or all.")] = "c2c",
    keep: Annotated[Path | None, typer.Option(help="Empty folder to keep runs and logs in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
) -> None:
    """Let things go wrong on purpose and show what becomes of the run: crashes, hangs, NaN, a full disk, kill -9 ...

    Each fault strikes a run of sixty trials of the fake backend, with real processes under Ray. The other trials and
    the table must come out as without it, and nothing may be left running.

    Exit codes: 0 everything as promised, 1 not.

    Example: evalkit drill --only hang,disk,driver

    Example: evalkit drill --same-outcomes --backend robotwin --ckpt step_30000
    """
    from rich.console import Console

    from evalkit.core.errors import UserError

    console = Console(stderr=True, highlight=False)
    if (backend != "fake" or policy or ckpt) and not same_outcomes:
        raise UserError("faults are played on the fake backend with the drill's own policy: add --same-outcomes")
    if list_kinds:
        _list()
        return
    if keep is not None and keep.is_dir() and any(keep.iterdir()):
        raise UserError(f"--keep {keep} isn't empty: give a new folder")
    with tempfile.TemporaryDirectory(prefix="evalkit-drill-", ignore_cleanup_errors=True) as temporary:
        folder = (keep or Path(temporary)).absolute()
        if same_outcomes:
            stage = _stage(folder, backend=backend, policy=policy, ckpt=ckpt, tasks=tasks, trials=trials, mode=mode)
            failed = _compare_ways(stage, console, as_json=as_json, as_markdown=as_markdown)
        else:
            failed = _play(only, faults, folder, console, as_json=as_json, as_markdown=as_markdown)
    raise typer.Exit(EXIT_FAILED if failed else 0)


def _list() -> None:
    from evalkit.drill.run_drill import all_cases

    for case in all_cases():
        print(f"{case.kind:<10} {case.fault}")


def _play(
    only: str | None, faults: Path | None, folder: Path, console: Console, *, as_json: bool, as_markdown: bool
) -> bool:
    from evalkit.core.errors import UserError
    from evalkit.drill.run_drill import case_of_file, choose, run_drill
    from evalkit.drill.show import markdown, to_json

    if only is not None and faults is not None:
        raise UserError("--faults plays its own faults: leave --only out")
    kinds = [word.strip() for word in (only or "").split(",") if word.strip()]
    cases = [case_of_file(faults)] if faults is not None else choose(kinds)
    console.print(f"{len(cases)} faults, one after another", markup=False)
    rows = run_drill(cases, folder, lambda row: _say_row(console, row))
    if as_json:
        print(json.dumps(to_json(rows), indent=1))
    elif as_markdown:
        print(markdown(rows), end="")
    else:
        _print(rows)
    return not all(row.passed for row in rows)


def _say_row(console: Console, row: Row) -> None:
    verdict = "ok" if row.passed else f"FAILED: {'; '.join(row.problems)}"
    console.print(f"{row.seconds:6.1f} s  {row.fault}: {row.happened}: {verdict}", markup=False, soft_wrap=True)


def _print(rows: list[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evalkit.drill.show import COLUMNS, cells

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, overflow="fold", justify="right" if name == "s" else "left")
    for row in rows:
        table.add_row(*(Text(cell, style="" if row.passed else "red") for cell in cells(row)))
    console = Console(highlight=False)
    console.print(table)
    passed = sum(row.passed for row in rows)
    console.print(f"{passed} of {len(rows)} faults survived as promised")


def _stage(
    folder: Path, *, backend: str, policy: str | None, ckpt: str | None, tasks: str, trials: int, mode: str
) -> Stage:
    from evalkit.cli.run_setup import RunRequest, prepare
    from evalkit.drill.same_outcomes import Stage
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.pool.drive import find_seeds
    from evalkit.pool.inline import InlineCrew
    from evalkit.pool.observer import Observer
    from evalkit.store.run import Run

    request = RunRequest(
        checkpoint=ckpt,
        policy=policy if policy or ckpt else "replay",
        mode=mode,
        tasks=tasks,
        trials=trials,
        repeats=1,
        execute_steps=None,
        seed_base=0,
        backend=backend,
        out=None,
    )
    setup = prepare(request)
    fingerprint = setup.backend.fingerprint()
    crew = InlineCrew(1, setup.backend.make_simulator)
    try:
        with SeedFiles(local_folder(), fingerprint.physics_digest) as files:
            seeds = find_seeds(crew, setup.seed_needs(), files, Observer())
    finally:
        crew.close()
    assert seeds is not None
    found = seeds

    def open_run(name: str) -> Run:
        return Run.create(folder / name, setup.info(fingerprint, found), setup.plan(fingerprint, found))

    return Stage(
        make_simulator=setup.backend.make_simulator,
        make_policy=setup.maker,
        open_run=open_run,
        configs=setup.config_map,
    )


def _compare_ways(stage: Stage, console: Console, *, as_json: bool, as_markdown: bool) -> bool:
    from evalkit.drill.same_outcomes import run_ways
    from evalkit.drill.show import markdown_ways, ways_to_json

    def say(way: Way) -> None:
        killed = f", killed: {', '.join(way.killed)}" if way.killed else ""
        left = f", left behind: {', '.join(way.left)}" if way.left else ""
        line = f"{way.seconds:6.1f} s  {way.name}: {way.trials} trials, {len(way.differing)} differ{killed}{left}"
        console.print(line, markup=False, soft_wrap=True)
        for difference in way.differing:
            console.print(f"          {difference}", markup=False, soft_wrap=True)

    ways = run_ways(stage, show=say)
    if as_json:
        print(json.dumps(ways_to_json(ways), indent=1))
    elif as_markdown:
        print(markdown_ways(ways), end="")
    else:
        verdict = "the same" if all(way.passed for way in ways) else "NOT the same"
        print(f"{ways[0].trials} trials in {len(ways)} ways: {verdict}")
    return not all(way.passed for way in ways)
