"""The options that name a RoboTwin installation, for every command that starts simulators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evalkit.sim.robotwin.official import World

RobotwinRoot = Annotated[
    Path | None,
    typer.Option(
        "--robotwin-root",
        metavar="PATH",
        help="A checkout, or a folder with assets/; else stand-ins.",
        show_default=False,
        rich_help_panel="RoboTwin",
    ),
]
RobotwinPython = Annotated[
    str | None,
    typer.Option(
        "--robotwin-python",
        metavar="PYTHON",
        help="Its interpreter: program, environment, conda:NAME.",
        show_default=False,
        rich_help_panel="RoboTwin",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RoboTwinChoice:
    """Which installation the command line names."""

    root: Path | None = None
    python: str | None = None

    def open(self, *, quiet: bool = False) -> World | None:
        """Look at it, with a word on standard error about what takes long and what isn't official.

        Args:
            quiet: say nothing; the caller will.

        Returns:
            The installation, or None if none is named.

        Raises:
            UserError: only the interpreter is named, or something is missing.
        """
        if self.root is None:
            if self.python is not None:
                from evalkit.core.errors import UserError

                raise UserError("--robotwin-python needs --robotwin-root: which installation is it for?")
            return None
        from rich.console import Console

        from evalkit.sim.robotwin.official import open_world

        console = Console(stderr=True, highlight=False, quiet=quiet)
        with console.status("looking at the installation ...") as status:
            world = open_world(
                self.root,
                self.python,
                lambda done, of: status.update(f"reading the asset files, once: {done} of {of}"),
            )
        for note in world.notes:
            console.print(f"not a leaderboard number: {note}", markup=False, soft_wrap=True)
        return world
