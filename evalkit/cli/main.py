"""The command line: ``evalkit <command>``. Each command lives in a module of its own, named in ``COMMANDS``.

Exit codes: 0 done, 1 incomplete or failed, 2 bad input, 75 interrupted and resumable.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from evalkit import __version__
from evalkit.cli.stopping import handlers_kept
from evalkit.core.errors import EvalkitError, UserError

COMMANDS: dict[str, tuple[str, ...]] = {
    "Evaluate": ("plan", "run", "status", "export", "report", "import", "tasks", "seeds", "policy", "serve", "slurm"),
    "Interpret": ("compare", "published", "protocol", "provenance"),
    "Train": ("collect", "data", "train"),
    "Set up": ("doctor", "drill", "robotwin", "standin"),
}
"""Panel of the help page → commands. Each is a module of ``evalkit.cli`` with ``register(app)``."""
_MODULES = {"import": "import_results"}
"""Commands whose module has another name: Python keywords."""
EXIT_FAILED, EXIT_BAD_INPUT, EXIT_RESUMABLE = 1, 2, 75


def make_app() -> typer.Typer:
    """The application with every command."""
    app = typer.Typer(
        name="evalkit",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Evaluate bimanual robot policies on RoboTwin 2.0, with numbers that say what they mean.",
        epilog="Start here: [bold]evalkit doctor[/bold], then "
        "[bold]evalkit run --ckpt step_30000 --mode all --tasks click_bell --trials 2[/bold]",
    )

    @app.callback()
    def _root(
        version: bool = typer.Option(
            False, "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ) -> None: ...

    for panel, modules in COMMANDS.items():
        for module in modules:
            known = len(app.registered_commands), len(app.registered_groups)
            importlib.import_module(f"evalkit.cli.{_MODULES.get(module, module)}").register(app)
            for command in app.registered_commands[known[0] :]:
                command.rich_help_panel = panel
            for group in app.registered_groups[known[1] :]:
                group.rich_help_panel = panel
    return app


def run_cli(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code. Errors end as one line on stderr."""
    try:
        with handlers_kept():
            result = make_app()(args=list(arguments) or ["--help"], prog_name="evalkit", standalone_mode=False)
    except TyperException as error:
        # A command group without a command has shown its help by now, and has nothing to say.
        if message := error.format_message():
            print(f"evalkit: {message} (options: evalkit {_command(arguments)}--help)", file=sys.stderr)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        result = 128 + signal.SIGINT
    except Exception as error:
        return _failed(error)
    if result == 128 + signal.SIGINT:
        return _interrupted(arguments)
    return result if isinstance(result, int) else 0


def main() -> None:
    """Entry point of the ``evalkit`` program."""
    sys.exit(run_cli(sys.argv[1:]))


def _command(arguments: Sequence[str]) -> str:
    words = [word for group in COMMANDS.values() for word in group]
    return f"{arguments[0]} " if arguments and arguments[0] in words else ""


def _interrupted(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "run":
        print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
        return EXIT_RESUMABLE
    print("interrupted", file=sys.stderr)
    return 130


def _failed(error: Exception) -> int:
    if os.environ.get("EVALKIT_DEBUG") == "1":
        traceback.print_exception(error)
    name = "" if isinstance(error, EvalkitError) else f"{type(error).__name__}: "
    hint = "" if isinstance(error, EvalkitError) else " (EVALKIT_DEBUG=1 shows where)"
    print(f"evalkit: {name}{error}{hint}", file=sys.stderr)
    return EXIT_BAD_INPUT if isinstance(error, UserError) else EXIT_FAILED


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evalkit {__version__}")
        raise typer.Exit


if __name__ == "__main__":
    main()
