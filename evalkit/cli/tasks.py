"""``evalkit tasks``: RoboTwin's tasks."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("tasks")(tasks_command)


def tasks_command(
    standin: Annotated[bool, typer.Option("--standin", help="Only tasks that the stand-in assets hold.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tasks as JSON.")] = False,
) -> None:
    """List RoboTwin's fifty tasks with their step limits, and whether the stand-in assets hold their objects.

    Example: evalkit tasks --standin --json
    """
    from evalkit.core.tasks import STANDIN_TASKS, STEP_LIMITS

    rows = [
        {"task": task, "step_limit": limit, "standin": task in STANDIN_TASKS}
        for task, limit in STEP_LIMITS.items()
        if not standin or task in STANDIN_TASKS
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return

    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("task", no_wrap=True)
    table.add_column("step limit", justify="right")
    table.add_column("stand-in assets")
    for row in rows:
        table.add_row(str(row["task"]), str(row["step_limit"]), "yes" if row["standin"] else "")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{len(rows)} of {len(STEP_LIMITS)} tasks; step limits are RoboTwin's, in take_action calls")
