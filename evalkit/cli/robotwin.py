"""``evalkit robotwin``: RoboTwin's own interpreter."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from evalkit.cli.robotwin_bench import bench_command
from evalkit.sim.robotwin.layout import RoboTwinInstall


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        name="robotwin",
        no_args_is_help=True,
        help="Install RoboTwin's task code in an interpreter of its own, show it, measure it, say what it saves.\n\n"
        "Example: [bold]evalkit robotwin install[/bold]",
    )
    group.command("install")(install_command)
    group.command("show")(show_command)
    group.command("bench")(bench_command)
    group.command("savings")(savings_command)
    app.add_typer(group)


def install_command(
    python: Annotated[
        str | None, typer.Option(help="Interpreter to build on, Python 3.10 to 3.12.", show_default="found by itself")
    ] = None,
    force: Annotated[bool, typer.Option(help="Make it anew even if it is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make RoboTwin's interpreter: task code, SAPIEN and what they need (about 500 MB). Quick if it is there.

    Example: [bold]evalkit robotwin install --python python3.11[/bold]
    """
    from evalkit.sim.robotwin.install import install

    found = install(python, force=force, progress=lambda line: typer.echo(line, err=True))
    _print(found, as_json)


def show_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say where RoboTwin's interpreter is.

    Example: [bold]evalkit robotwin show --json[/bold]
    """
    from evalkit.core.errors import HarnessError
    from evalkit.sim.robotwin.install import installed

    found = installed()
    if found is None:
        raise HarnessError("RoboTwin isn't installed: run `evalkit robotwin install`")
    _print(found, as_json)


def savings_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the work of RoboTwin's loop that evalkit leaves out, for --savings of `evalkit run`. It changes no result.

    Example: [bold]evalkit robotwin savings[/bold]
    """
    from evalkit.sim.robotwin.worker.savings import SAVINGS

    if as_json:
        typer.echo(json.dumps(SAVINGS, indent=1))
        return
    for name, what in SAVINGS.items():
        typer.echo(f"{name:16}{what}")


def _print(found: RoboTwinInstall, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({name: str(value) for name, value in asdict(found).items()}, indent=1))
    else:
        typer.echo(f"{found.code}, layout {found.layout}: {found.python}")
