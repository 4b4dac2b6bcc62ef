"""``evalkit published``: scores of others, with their sources."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evalkit.aggregate.audit import Finding
    from evalkit.aggregate.published import PublishedTable


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    commands = typer.Typer(
        no_args_is_help=True, help="Published scores of others: tables, sources, and what doesn't add up."
    )
    commands.command("list")(list_command)
    commands.command("show")(show_command)
    commands.command("audit")(audit_command)
    app.add_typer(commands, name="published")


def list_command(as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False) -> None:
    """List the published tables: means, labels as their training data gives them, number of tasks with rates.

    Example: evalkit published list --json
    """
    from evalkit.aggregate.published import load_tables

    tables = load_tables()
    if as_json:
        print(json.dumps([_plain(table) for table in tables], indent=1))
        return
    from rich.console import Console

    from evalkit.report.published import render_list

    Console(highlight=False).print(render_list(tables))


def show_command(
    model: Annotated[str, typer.Argument(help="A model, e.g. x-wam; a source, e.g. leaderboard; or one table's name.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables with all rates as JSON.")] = False,
) -> None:
    """Show what is known of a model's published tables, and the rate of every task.

    Example: evalkit published show x-wam
    """
    from evalkit.aggregate.published import find_tables, load_tables

    tables = find_tables(model, load_tables())
    if as_json:
        print(json.dumps([_plain(table) for table in tables], indent=1))
        return
    from rich.console import Console

    from evalkit.report.published import render_tables

    Console(highlight=False).print(render_tables(tables))


def audit_command(
    averages: Annotated[
        bool, typer.Option("--averages", help="List the findings about the averages read by machine, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what doesn't add up in published tables: impossible rates, wrong means, missing tasks, unclear training data.

    The numbers stay as their sources print them.

    Example: evalkit published audit --averages
    """
    from dataclasses import asdict

    from evalkit.aggregate.audit import audit, audit_averages
    from evalkit.aggregate.published import load_averages, load_tables

    tables, reported = load_tables(), load_averages()
    findings, others = audit(tables), audit_averages(reported)
    if as_json:
        values = {"tables": [asdict(item) for item in findings], "averages": [asdict(item) for item in others]}
        print(json.dumps(values, indent=1))
        return
    from rich.console import Console
    from rich.text import Text

    from evalkit.report.published import render_audit

    console = Console(highlight=False)
    console.print(render_audit(findings))
    console.print()
    console.print(Text(f"{len(tables)} tables: {_counted(findings)}"))
    console.print(Text(f"{len(reported)} averages read by machine, unchecked: {_counted(others)}"))
    if averages:
        console.print()
        console.print(render_audit(others))


def _counted(findings: Sequence[Finding]) -> str:
    kinds = Counter(finding.kind for finding in findings)
    return ", ".join(f"{number} x {kind}" for kind, number in kinds.most_common()) or "nothing found"


def _plain(table: PublishedTable) -> dict[str, Any]:
    from evalkit.aggregate.published import CONFIGS

    return {
        "table": table.name,
        "model": table.model,
        "training": table.training,
        "training_as_stated": table.training_as_stated,
        "setting": table.setting,
        "protocol": table.protocol,
        "trials_per_task": table.trials_per_task,
        "unit": "percent",
        "labels": {config: table.label(config) for config in CONFIGS},
        "stated": [
            {"config": mean.config, "what": mean.what, "percent": float(mean.percent), "source": mean.source}
            for mean in table.stated
        ],
        "rates": {config: {task: float(rate) for task, rate in rates.items()} for config, rates in table.rates.items()},
        "source": table.source,
        "note": table.note,
    }
