"""The wheel holds what a run needs, so that `pip install` and an empty folder are enough."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("evalkit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_source_file_travels(names):
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "evalkit").rglob("*.py")}
    assert sources - names == set()


@pytest.mark.parametrize("folder", ["task_configs", "policies", "checkpoints"])
def test_bundled_folders_travel(names, folder):
    ignored = {".gitkeep", ".pyc"}
    wanted = {
        f"evalkit/_bundled/{path.relative_to(ROOT)}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.name not in ignored and path.suffix not in ignored
    }
    assert wanted
    assert wanted - names == set()


def test_published_scores_travel(names):
    wanted = {f"evalkit/_bundled/published/{path.name}" for path in (ROOT / "results/published").iterdir()}
    assert wanted
    assert wanted <= names


def test_data_files_of_packages_travel(names):
    assert {"evalkit/sim/robotwin/requirements.lock", "evalkit/py.typed"} <= names


def test_nothing_else_travels(names):
    assert {name.split("/")[0].split("-")[0] for name in names} == {"evalkit"}
    assert not [name for name in names if "__pycache__" in name or name.startswith("evalkit/_bundled/results")]
