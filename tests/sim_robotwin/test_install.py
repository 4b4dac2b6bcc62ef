"""Making RoboTwin's interpreter: what is run, what counts as installed, and what is said when it fails."""

from __future__ import annotations

import json
import sys
import threading
import time

import pytest

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.lock import FileLock
from evalkit.sim.robotwin import install as module
from evalkit.sim.robotwin.doctor.checks import check_frame, check_interpreter
from evalkit.sim.robotwin.install import install, installed
from evalkit.sim.robotwin.vulkan import examine

PACKAGES = {"numpy": "1.26.4", "sapien": "3.0.3"}


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Replaces the running of commands by a list of them; a venv's interpreter appears as an empty file."""
    monkeypatch.setenv("EVALKIT_HOME", str(tmp_path))
    done = []

    def run(command, limit_s, purpose):
        done.append(command)
        if "venv" in command:
            python = tmp_path / "robotwin/venv/bin/python"
            python.parent.mkdir(parents=True)
            python.touch()
        return json.dumps(PACKAGES)

    monkeypatch.setattr(module, "_run", run)
    return done


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_installs_locked_packages_then_the_task_code_without_its_pins(commands, tmp_path):
    found = install()
    assert found == installed()
    assert (found.code, found.layout) == ("rlinf-robotwin-runtime==0.1.3", "pypi")
    assert found.python == tmp_path / "robotwin/venv/bin/python"
    first, second = (command for command in commands if "pip" in command)
    assert first[-2:] == ["-r", str(module.LOCK_FILE)]
    assert "--no-deps" in second
    assert second[-1] == "rlinf-robotwin-runtime==0.1.3"


def test_a_second_call_does_nothing_and_force_starts_anew(commands):
    install()
    count = len(commands)
    install()
    assert len(commands) == count
    install(force=True)
    assert len(commands) == 2 * count


def test_another_interpreter_is_a_reason_to_start_anew(commands, tmp_path):
    install()
    count = len(commands)
    install(program(tmp_path / "python-other", "echo 3 12"))
    assert len(commands) == 2 * count


def test_an_interrupted_installation_counts_for_nothing_and_is_repaired(commands, tmp_path, monkeypatch):
    whole = module._run

    def dies_at_the_import(command, limit_s, purpose):
        if "import" in purpose:
            raise KeyboardInterrupt
        return whole(command, limit_s, purpose)

    monkeypatch.setattr(module, "_run", dies_at_the_import)
    with pytest.raises(KeyboardInterrupt):
        install()
    assert installed() is None
    monkeypatch.setattr(module, "_run", whole)
    assert install() == installed()


def test_other_requirements_make_an_installation_stale(commands, tmp_path, monkeypatch):
    install()
    changed = tmp_path / "requirements.lock"
    changed.write_text(module.LOCK_FILE.read_text() + "six==1.17.0\n")
    monkeypatch.setattr(module, "LOCK_FILE", changed)
    assert installed() is None


def test_a_vanished_interpreter_makes_an_installation_stale(commands):
    install().python.unlink()
    assert installed() is None


def test_two_installations_wait_for_each_other(commands, tmp_path):
    other = FileLock(tmp_path / "robotwin/.install.lock")
    assert other.acquire()
    lines = []
    thread = threading.Thread(target=install, kwargs={"progress": lines.append})
    thread.start()
    deadline = time.monotonic() + 20
    while not lines and time.monotonic() < deadline:
        time.sleep(0.02)
    assert lines == ["another installation is running: waiting for it"]
    assert commands == []
    other.release()
    thread.join(timeout=20)
    assert installed() is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo 3 13", r"is Python 3\.13; RoboTwin's packages need 3\.10 to 3\.12"),
        ("exit 1", "doesn't run, or lacks the venv module"),
        (None, "no such program"),
    ],
)
def test_an_unfit_interpreter_is_refused_by_name(commands, tmp_path, text, message):
    path = tmp_path / "python-odd"
    if text:
        program(path, text)
    with pytest.raises(UserError, match=message) as caught:
        install(str(path))
    assert str(path) in str(caught.value)
    assert commands == []


def test_a_running_interpreter_that_is_too_new_is_passed_over(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "_base_executable", program(tmp_path / "python-new", "echo 3 14"), raising=False)
    fit = program(tmp_path / "python3.12", "echo 3 12")
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path / "python3.11", "exit 127")
    assert module._choose_python(None) == fit


@pytest.mark.parametrize(
    ("output", "compiler", "kind", "message"),
    [
        ("toppra/x.cpp: fatal error: Python.h: No such file or directory", True, UserError, "needs Python's headers"),
        (
            "error: command 'g++' failed\nFailed to build toppra",
            False,
            UserError,
            r"needs a C\+\+ compiler: install g\+\+",
        ),
        (
            "WARNING: odd\nERROR: No matching distribution found for six==9\n",
            True,
            HarnessError,
            "No matching .* six==9",
        ),
        ("ModuleNotFoundError: No module named 'mplib'\n", True, HarnessError, "No module named 'mplib'"),
    ],
)
def test_failures_name_the_cause(output, compiler, kind, message, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_has_compiler", lambda: compiler)
    error = module._explain(output, 1, "install x", tmp_path / "install.log")
    assert type(error) is kind
    with pytest.raises(kind, match=message):
        raise error


def test_a_failed_command_leaves_its_whole_output_in_a_log(monkeypatch, tmp_path):
    monkeypatch.setenv("EVALKIT_HOME", str(tmp_path))
    with pytest.raises(HarnessError, match="couldn't divide: ZeroDivisionError: division by zero"):
        module._run([sys.executable, "-c", "print('before'); 1/0"], 60, "divide")
    assert "before" in (tmp_path / "robotwin/install.log").read_text()
    with pytest.raises(HarnessError, match="couldn't wait within 0 s"):
        module._run([sys.executable, "-c", "import time; time.sleep(60)"], 0.2, "wait")


@pytest.mark.sim
def test_this_machines_installation_is_whole_and_renders():
    assert check_interpreter().status == "ok", check_interpreter()
    frame = check_frame(examine())
    assert frame.status == "ok", frame
