"""Files stay short, and text speaks of evalkit alone."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_LINES = 300
# Copied as one file into the assets: RoboTwin's interpreter loads it alone.
LONGER = {"evalkit/standin/planner.py": 520}
SOURCES = [path for folder in ("evalkit", "policies") for path in sorted((ROOT / folder).rglob("*.py"))]


def normal_name(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def locked(path: Path) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split(";")[0].strip().split("==")
            pins.setdefault(normal_name(name), set()).add(version)
    return pins


def test_no_source_file_is_long():
    long = {
        str(path.relative_to(ROOT)): count
        for path in SOURCES
        if (count := len(path.read_text().splitlines())) > LONGER.get(str(path.relative_to(ROOT)), LIMIT_LINES)
    }
    assert long == {}


def test_no_work_is_left_for_later():
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|pytest\.mark\.(skip|xfail)\b")
    tests = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    found = [str(path.relative_to(ROOT)) for path in SOURCES + tests if marks.search(path.read_text())]
    assert found == []


def test_every_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    wanted += project["build-system"]["requires"]
    assert {normal_name(item) for item in wanted} - set(locked(ROOT / "requirements/evalkit.lock")) == set()


def test_robotwin_runs_the_versions_its_packages_need():
    pins = locked(ROOT / "evalkit/sim/robotwin/requirements.lock")
    assert pins["numpy"] == {"1.26.4"}, "mplib 0.2.1 crashes with numpy 2"
    assert pins["sapien"] == locked(ROOT / "requirements/evalkit.lock")["sapien"] == {"3.0.3"}
    assert not {"torch", "open3d", "huggingface-hub", "rlinf-robotwin-runtime"} & set(pins)


@pytest.mark.parametrize("script", ["scripts/setup.sh", "scripts/vulkan.sh", ".ci/run"])
def test_scripts_are_executable_and_parse(script):
    path = ROOT / script
    shell = "bash" if "bash" in path.read_text().splitlines()[0] else "sh"
    assert path.stat().st_mode & 0o111
    subprocess.run([shell, "-n", str(path)], check=True, timeout=30)


PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_documentation_exist(page):
    text = (ROOT / page).read_text()
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
    assert named <= targets, named - targets
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}, which isn't there"


def test_every_known_trap_has_its_row_and_its_test():
    text = (ROOT / "docs/protocols.md").read_text().split("## RoboTwin's traps, one by one")[1].split("\n## ")[0]
    numbers = set()
    for first, last in re.findall(r"\bT(\d+)(?: to T(\d+))?", text):
        numbers |= set(range(int(first), int(last or first) + 1))
    assert numbers == set(range(1, 38))
    tests = set(re.findall(r"`([a-z_]+/test_[a-z_]+\.py)`", text))
    assert len(tests) > 10
    assert [name for name in sorted(tests) if not (ROOT / "tests" / name).exists()] == []


def test_decisions_are_numbered_once():
    folder = ROOT / "docs/decisions"
    names = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [name[:4] for name in names] == [f"{number:04d}" for number in range(1, len(names) + 1)]
    assert re.findall(r"\]\(([^)]+)\)", (folder / "README.md").read_text()) == names


def test_continuous_integration_runs_the_readmes_test_command():
    assert "make test" in (ROOT / "README.md").read_text()
    assert re.search(r"^make test\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)
