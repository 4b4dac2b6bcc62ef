"""``evalkit data``: commands on demonstration data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evalkit.data.verify import VerifyReport

EXIT_BROKEN = 1


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(help="Commands on demonstration data.", no_args_is_help=True)
    group.command("verify")(verify_command)
    group.callback()(_group)
    app.add_typer(group, name="data")


def _group() -> None:
    """Commands on demonstration data."""


def verify_command(
    path: Annotated[Path, typer.Argument(help="A data root, <task>/<config>, a folder of episodes, or one file.")],
    full: Annotated[bool, typer.Option(help="Decode every image and compare checksums.")] = False,
    expect: Annotated[int, typer.Option(min=1, help="Episodes per task; another number is a warning.")] = 50,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; at most 8, one per core, if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Find every broken demonstration file and say what is wrong with it.

    Exit code 0: no errors (there may be warnings); 1: broken files; 2: nothing to check at PATH.

    Example: evalkit data verify data/click_bell/demo_clean
    """
    from rich.console import Console
    from rich.progress import Progress

    from evalkit.data.verify import verify

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("verify", total=None)
        report = verify(
            path,
            workers=workers or min(8, os.cpu_count() or 1),
            full=full,
            expected_episodes=expect,
            on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if as_json:
        print(json.dumps(to_json(report), indent=1))
    else:
        _print_report(report)
    if report.errors:
        raise typer.Exit(EXIT_BROKEN)


def to_json(report: VerifyReport) -> dict[str, object]:
    """Plain mapping of a report."""
    return {
        "path": str(report.path),
        "datasets": report.datasets,
        "files": report.files,
        "frames": report.frames,
        "ok": not report.errors,
        "findings": [
            {"path": str(each.path), "kind": each.kind, "severity": each.severity, "message": each.message}
            for each in report.findings
        ],
    }


def _print_report(report: VerifyReport) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if report.findings:
        table = Table("file", "kind", "what is wrong")
        base = report.path if report.path.is_dir() else report.path.parent
        for finding in report.findings:
            style = "red" if finding.severity == "error" else "yellow"
            kind = f"[{style}]{finding.kind}[/{style}]"
            table.add_row(escape(str(finding.path.relative_to(base))), kind, escape(finding.message))
        console.print(table)
    warnings = len(report.findings) - len(report.errors)
    console.print(
        f"{report.files} episode files, {report.frames} frames: {len(report.broken_files)} broken files, "
        f"{len(report.errors)} errors, {warnings} warnings"
    )
