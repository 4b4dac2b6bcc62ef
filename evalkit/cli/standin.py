"""``evalkit standin``: make, show and check the generated world."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evalkit.standin.build import StandInAssets

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def register(app: typer.Typer) -> None:
    """Add the ``standin`` commands to the application."""
    commands = typer.Typer(help="The generated world: robot, objects, textures and planner.", no_args_is_help=True)
    commands.command("build")(build)
    commands.command("show")(show)
    commands.command("verify")(verify)
    app.add_typer(commands, name="standin")


def build(
    out: Annotated[Path | None, typer.Option(help="Folder to build in; default: evalkit's own.")] = None,
    as_json: Json = False,
) -> None:
    """Generate the stand-in assets (a few seconds, no download).

    Example: evalkit standin build
    """
    from rich.console import Console
    from rich.progress import Progress

    from evalkit.standin import build as world

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("writing stand-in assets", total=None)
        assets = world.build(out, lambda _path, count, total: bar.update(task, completed=count, total=total))
    _print({"root": str(assets.root), "digest": assets.digest}, as_json)


def show(as_json: Json = False) -> None:
    """Show the installed world: where it is, its digest, its tasks and objects.

    Example: evalkit standin show --json
    """
    from evalkit.core.tasks import STANDIN_TASKS
    from evalkit.standin.objects import NEEDED

    assets = _installed()
    facts: dict[str, object] = {
        "root": str(assets.root),
        "digest": assets.digest,
        "tasks": list(STANDIN_TASKS),
        "objects": {name: list(numbers) for name, numbers in NEEDED.items()},
    }
    _print(facts, as_json)


def verify(
    root: Annotated[Path | None, typer.Option(help="World to check; default: the installed one.")] = None,
    as_json: Json = False,
) -> None:
    """Read every file of a world and compare it with its manifest.

    Example: evalkit standin verify
    """
    from evalkit.standin import build as world

    assets = world.verify(root if root is not None else _installed().root)
    _print({"root": str(assets.root), "digest": assets.digest, "verified": True}, as_json)


def _installed() -> StandInAssets:
    from evalkit.core.errors import UserError
    from evalkit.standin import build as world

    assets = world.installed()
    if assets is None:
        raise UserError("no stand-in assets of this version are installed: run 'evalkit standin build'")
    return assets


def _print(facts: dict[str, object], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for name, value in facts.items():
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        if isinstance(value, dict):
            value = ", ".join(f"{key} ({len(numbers)})" for key, numbers in value.items())
        typer.echo(f"{name:9} {value}")
