"""The command line as a person meets it: help, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer

from evalkit import __version__
from evalkit.cli import main as command_line
from evalkit.core.errors import HarnessError, UserError

COMMANDS = [name for names in command_line.COMMANDS.values() for name in names]


def evalkit(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "evalkit.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "200", **environment},
    )


def leaf_commands() -> list[list[str]]:
    app = command_line.make_app()
    leaves = [[command.name or command.callback.__name__] for command in app.registered_commands]
    for group in app.registered_groups:
        inner = group.typer_instance
        name = group.name or inner.info.name
        leaves += [[name, command.name or command.callback.__name__] for command in inner.registered_commands]
    return leaves


def test_the_front_page_names_every_command():
    answer = evalkit("--help")
    assert answer.returncode == 0
    assert [name for name in COMMANDS if name not in answer.stdout] == []


@pytest.mark.parametrize("leaf", leaf_commands(), ids=" ".join)
def test_every_command_has_help_with_an_example(leaf, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert command_line.run_cli([*leaf, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"evalkit {' '.join(leaf)}" in text.split("Usage:")[1][len(" evalkit " + " ".join(leaf)) :]


@pytest.mark.parametrize("command", ["run", "plan"])
def test_every_option_is_one_line_of_a_panel(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert command_line.run_cli([command, "--help"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert len(rows) > 15
    assert [row for row in rows if not row.startswith("│ --")] == []


def test_version():
    assert evalkit("--version").stdout.strip() == f"evalkit {__version__}"


@pytest.mark.parametrize("arguments", [["rnu"], ["doctor", "--jsn"], ["robotwin", "shw"]])
def test_bad_usage_is_one_line_and_exit_code_two(arguments):
    answer = evalkit(*arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "--help" in answer.stderr


def test_a_group_without_a_command_shows_its_help():
    answer = evalkit("robotwin")
    assert "install" in answer.stdout
    assert answer.stderr == ""


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m evalkit.cli.main --help | head -n 1"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True)
    assert answer.stderr == ""


def test_help_is_quick_since_nothing_heavy_is_imported():
    code = (
        "import sys; from evalkit.cli.main import make_app; make_app(); "
        "print(*sorted({'torch', 'ray', 'sapien', 'pandas', 'scipy', 'h5py'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == ""


def app_that(action) -> typer.Typer:
    app = typer.Typer()
    app.command("run")(action)
    app.command("other")(lambda: None)
    return app


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("task 'x': no such task"), 2, "evalkit: task 'x': no such task"),
        (HarnessError("the pool is empty"), 1, "evalkit: the pool is empty"),
        (
            ZeroDivisionError("division by zero"),
            1,
            "evalkit: ZeroDivisionError: division by zero (EVALKIT_DEBUG=1 shows where)",
        ),
        (typer.Exit(75), 75, ""),
    ],
)
def test_errors_end_as_one_line_and_an_exit_code(error, code, line, monkeypatch, capsys):
    def action() -> None:
        raise error

    monkeypatch.setattr(command_line, "make_app", lambda: app_that(action))
    monkeypatch.delenv("EVALKIT_DEBUG", raising=False)
    assert command_line.run_cli(["run"]) == code
    assert capsys.readouterr().err.strip() == line


def test_a_traceback_is_shown_on_request_only(monkeypatch, capsys):
    def action() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(command_line, "make_app", lambda: app_that(action))
    monkeypatch.setenv("EVALKIT_DEBUG", "1")
    assert command_line.run_cli(["run"]) == 1
    assert "in action" in capsys.readouterr().err


def test_an_interrupted_run_says_that_it_goes_on(monkeypatch, capsys):
    def action() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "make_app", lambda: app_that(action))
    assert command_line.run_cli(["run"]) == 75
    assert "same command" in capsys.readouterr().err


def test_robotwin_show_without_an_installation(tmp_path):
    answer = evalkit("robotwin", "show", EVALKIT_HOME=str(tmp_path))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "evalkit robotwin install" in answer.stderr


def test_doctor_in_an_empty_home_names_every_remedy(tmp_path):
    answer = evalkit("doctor", "--json", EVALKIT_HOME=str(tmp_path))
    report = json.loads(answer.stdout)
    rows = {row["name"]: row for row in report["checks"]}
    assert answer.returncode == 1
    assert report["ok"] is False
    assert (
        rows["RoboTwin"]["status"] == rows["Probe picture"]["status"] == rows["Stand-in assets"]["status"] == "missing"
    )
    assert rows["Python"]["status"] == rows["Ray"]["status"] == "ok"
    assert all(row["remedy"] for row in rows.values() if row["status"] != "ok")
