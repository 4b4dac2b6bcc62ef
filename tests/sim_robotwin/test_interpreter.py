"""RoboTwin's interpreter is found by path, folder and conda name."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.sim.robotwin import interpreter
from evalkit.sim.robotwin.host import WORKER
from evalkit.sim.robotwin.interpreter import ask_packages, find_python


def environment(folder):
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def conda(tmp_path, monkeypatch):
    """A home folder with a miniconda of two environments, and one that lies elsewhere."""
    for name in ("CONDA_EXE", "CONDA_ROOT", "MAMBA_ROOT_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(interpreter, "_SHARED_CONDA", tmp_path / "none")
    monkeypatch.setenv("PATH", "/nowhere")
    programs = {
        "base": environment(tmp_path / "miniconda3"),
        "RoboTwin": environment(tmp_path / "miniconda3/envs/RoboTwin"),
        "far": environment(tmp_path / "scratch/far"),
    }
    (tmp_path / "miniconda3/envs/empty").mkdir()
    (tmp_path / ".conda").mkdir()
    (tmp_path / ".conda/environments.txt").write_text(f"{tmp_path / 'scratch/far'}\n{tmp_path / 'gone'}\n\n")
    return programs


@pytest.mark.parametrize("name", ["base", "RoboTwin", "far"])
def test_conda_environments_are_found_by_name(conda, name):
    assert find_python(f"conda:{name}") == conda[name]


def test_an_unknown_conda_environment_names_the_near_ones(conda):
    with pytest.raises(UnknownNameError, match="did you mean RoboTwin"):
        find_python("conda:Robotwin2")


def test_without_conda_the_error_says_so(tmp_path, monkeypatch, conda):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "nobody")
    with pytest.raises(UserError, match="no conda environment found"):
        find_python("conda:RoboTwin")


def test_a_folder_and_a_program_name_the_same(tmp_path):
    program = environment(tmp_path / "venv")
    assert find_python(str(tmp_path / "venv")) == find_python(str(program)) == program


def test_a_link_isnt_followed_because_the_environment_is_where_it_lies(tmp_path):
    link = tmp_path / "venv/bin/python"
    link.parent.mkdir(parents=True)
    link.symlink_to(sys.executable)
    assert find_python(str(link)) == link


@pytest.mark.parametrize(("given", "told"), [("nothing-here", "no such program"), ("{}", "has no bin/python")])
def test_what_isnt_there_is_refused(tmp_path, given, told):
    with pytest.raises(UserError, match=told):
        find_python(given.format(tmp_path))


def test_packages_are_listed_in_one_spelling():
    version, packages, has_curobo = ask_packages(Path(sys.executable))
    assert version == sys.version_info[:3]
    assert "numpy" in packages
    assert all(name == name.lower() and "_" not in name for name in packages)
    assert not has_curobo


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            'echo \'{"python": [3, 7, 1], "packages": {}, "curobo": false}\'',
            "is Python 3.7.1; evalkit's worker runs on",
        ),
        ('echo \'{"python": [3, 13, 0], "packages": {}, "curobo": false}\'', "is Python 3.13.0"),
        ("echo broken >&2; exit 3", r"doesn't run \(broken\)"),
    ],
)
def test_an_interpreter_that_cant_be_used_is_refused(tmp_path, script, told):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(UserError, match=told):
        ask_packages(program)


RUNS_THERE = sorted(Path(WORKER).glob("*.py"))
OF_ROBOTWIN = {"robotwin", "numpy", "sapien", "yaml", "cv2"}
"""The packaged runtime, and packages that RoboTwin itself asks for."""


@pytest.mark.parametrize("path", RUNS_THERE, ids=lambda path: path.name)
def test_the_worker_runs_on_python_3_8_with_robotwins_packages_alone(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    tops = {name.partition(".")[0] for name in imported}
    own = {other.stem for other in RUNS_THERE}
    assert tops - own - OF_ROBOTWIN - sys.stdlib_module_names == set()
