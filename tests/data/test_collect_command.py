from __future__ import annotations

import json
import signal

import pytest
import typer
from typer.testing import CliRunner

from evalkit.cli import collect as command
from evalkit.core.errors import UnknownNameError
from evalkit.data.verify import verify


@pytest.fixture(autouse=True)
def _keep_signal_handler():
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


def run(out, *arguments):
    app = typer.Typer()
    command.register(app)
    app.callback()(lambda: None)
    words = ["collect", "--backend", "fake", "--out", str(out), "--workers", "2", *map(str, arguments)]
    return CliRunner().invoke(app, words)


def test_command_collects_and_prints_what_it_did(tmp_path):
    result = run(tmp_path, "--tasks", "place_shoe,click_bell", "--episodes", 2, "--json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert [(task["task"], task["episodes"], task["complete"]) for task in summary["tasks"]] == [
        ("click_bell", 2, True),
        ("place_shoe", 2, True),
    ]
    assert verify(tmp_path, expected_episodes=2).findings == ()
    again = run(tmp_path, "--tasks", "click_bell", "--episodes", 2)
    assert again.exit_code == 0
    assert "2/2" in again.stdout


def test_an_incomplete_collection_exits_1(tmp_path):
    result = run(tmp_path, "--tasks", "click_bell", "--episodes", 40, "--max-rejects", 1, "--json")
    assert result.exit_code == 1
    [task] = json.loads(result.stdout)["tasks"]
    assert not task["complete"]
    assert "raise --max-rejects" in task["stopped"]


def test_an_interrupted_collection_exits_75(tmp_path, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("evalkit.episode.demonstration.collect_episode", interrupted)
    result = run(tmp_path, "--tasks", "click_bell", "--episodes", 2)
    assert result.exit_code == 75
    assert "the same command goes on from here" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "clik_bell"], "did you mean click_bell"),
        (["--config", "demo_cleen"], "did you mean demo_clean"),
        (["--cameras", "head_cam"], "did you mean head_camera"),
        (["--backend", "robotwinn"], "did you mean robotwin"),
    ],
)
def test_bad_names_are_refused_before_anything_starts(tmp_path, arguments, message):
    result = run(tmp_path, *arguments)
    assert isinstance(result.exception, UnknownNameError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []
