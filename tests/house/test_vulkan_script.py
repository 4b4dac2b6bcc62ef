"""scripts/vulkan.sh against a made-up Debian: apt, dpkg and the driver check are stand-ins that keep a diary."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIRROR = "http://mirror.example/debian"
DEB822 = f"""# a comment
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: {MIRROR}
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/k.gpg
"""
ONE_LINE = f"""# deb http://old.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] {MIRROR} bookworm main contrib
deb-src {MIRROR} bookworm main
"""


class Machine:
    """A folder that stands for a machine, and the programs the script finds there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.apt = folder / "etc/apt"
        (self.apt / "sources.list.d").mkdir(parents=True)
        self.bin.mkdir()
        (folder / "etc/os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
        self.program("id", "echo 0")
        # The driver check fails until Mesa has been installed.
        self.driver = folder / "driver"
        check = f"[ -f {self.driver} ] && echo lavapipe || {{ echo no driver; exit 1; }}"
        self.program("python", f'case "$*" in *evalkit.sim.robotwin.vulkan*) {check};; esac')
        self.program(
            "apt-get",
            f'echo "apt-get $*" >> {folder}/diary; case "$*" in *mesa*) echo lavapipe > {self.driver};; esac',
        )
        # The suite's Mesa is too old unless backports are among the sources.
        self.program("apt-cache", "echo '  Candidate: 22.3.6-1+deb12u2'")
        self.program("c++", "exit 0")

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHON": str(self.bin / "python"),
            "EVALKIT_APT_ROOT": str(self.folder),
        }
        command = ["sh", str(ROOT / "scripts/vulkan.sh")]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)

    @property
    def diary(self) -> str:
        path = self.folder / "diary"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize(("name", "text"), [("sources.list.d/debian.sources", DEB822), ("sources.list", ONE_LINE)])
def test_backports_come_from_the_machines_own_mirror(machine, name, text):
    (machine.apt / name).write_text(text)
    answer = machine.run()
    assert answer.returncode == 0, answer.stderr
    assert (machine.apt / "sources.list.d/evalkit-backports.sources").read_text().splitlines() == [
        "Types: deb",
        f"URIs: {MIRROR}",
        "Suites: bookworm-backports",
        "Components: main",
        "Signed-By: /usr/share/keyrings/k.gpg",
    ]
    assert "-t bookworm-backports mesa-vulkan-drivers" in machine.diary
    assert "example" not in answer.stdout + answer.stderr


def test_a_second_run_changes_nothing(machine):
    (machine.apt / "sources.list").write_text(ONE_LINE)
    machine.run()
    diary = machine.diary
    answer = machine.run()
    assert (answer.returncode, answer.stdout) == (0, "setup: Vulkan: lavapipe\n")
    assert machine.diary == diary


def test_backports_that_are_there_are_used(machine):
    (machine.apt / "sources.list").write_text(ONE_LINE + f"deb {MIRROR} bookworm-backports main\n")
    assert machine.run().returncode == 0
    assert not (machine.apt / "sources.list.d/evalkit-backports.sources").exists()
    assert "-t bookworm-backports" in machine.diary


def test_a_new_enough_system_needs_no_backports(machine):
    (machine.folder / "etc/os-release").write_text("ID=debian\nVERSION_CODENAME=trixie\n")
    machine.program("apt-cache", "echo '  Candidate: 25.0.7-2'")
    assert machine.run().returncode == 0
    assert "-t " not in machine.diary


def test_an_old_other_system_is_told_so(machine):
    (machine.folder / "etc/os-release").write_text("ID=ubuntu\nVERSION_CODENAME=focal\n")
    answer = machine.run()
    assert answer.returncode == 1
    assert "this system's Mesa is older than 23.2" in answer.stderr


def test_without_root_the_commands_are_printed(machine):
    machine.program("id", "echo 1000")
    (machine.apt / "sources.list").write_text(ONE_LINE)
    answer = machine.run()
    assert answer.returncode == 1
    assert f"sudo {ROOT}/scripts/vulkan.sh" in answer.stdout
    assert "apt-get install -t bookworm-backports mesa-vulkan-drivers" in answer.stdout
    assert machine.diary == ""


def test_unreachable_sources_are_one_clear_line_without_addresses(machine):
    (machine.apt / "sources.list").write_text(ONE_LINE)
    machine.program("apt-get", f'echo "E: Failed to fetch {MIRROR}/dists/x" >&2; exit 100')
    answer = machine.run()
    assert answer.returncode == 1
    assert "no package source can be reached" in answer.stderr
    assert "example" not in answer.stdout + answer.stderr


def test_no_debian_source_to_copy(machine):
    (machine.apt / "sources.list").write_text("deb http://elsewhere.example/x stable main\n")
    answer = machine.run()
    assert answer.returncode == 1
    assert "no Debian source for bookworm" in answer.stderr


def test_missing_libraries_are_installed_with_it(machine):
    (machine.apt / "sources.list").write_text(ONE_LINE)
    text = (machine.bin / "python").read_text()
    machine.program(
        "python", text.split("\n", 1)[1].replace("case", 'case "$*" in *libGL.so.1*) exit 1;; esac; case', 1)
    )
    assert machine.run().returncode == 0
    assert "install -y --no-install-recommends libgl1\n" in machine.diary
