"""The checks: Vulkan drivers, RoboTwin's interpreter, a rendered picture."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from evalkit.core.errors import HarnessError
from evalkit.sim.robotwin.doctor.check import Check
from evalkit.sim.robotwin.install import installed, list_packages, read_record
from evalkit.sim.robotwin.vulkan import VulkanState

PROBE = Path(__file__).with_name("probe_frame.py")
PROBE_LIMIT_S = 120.0
_BLANK_STD = 1e-3
_INSTALL = "run `evalkit robotwin install`"


def check_vulkan(state: VulkanState) -> Check:
    """Is there a driver SAPIEN can render with?"""
    if not state.is_ok:
        return Check("Vulkan", "missing", state.found, state.remedy)
    return Check("Vulkan", "warning" if state.remedy else "ok", state.found, state.remedy)


def check_interpreter() -> Check:
    """Is RoboTwin's interpreter there, complete and unchanged since it was installed?"""
    name, record = "RoboTwin", read_record()
    if record is None:
        return Check(name, "missing", "not installed", _INSTALL)
    found = installed()
    if found is None:
        return Check(name, "missing", "installed for other requirements, or its interpreter is gone", _INSTALL)
    again = "run `evalkit robotwin install --force`"
    try:
        packages = list_packages(found.python)
    except HarnessError as error:
        return Check(name, "missing", str(error), again)
    versions = [f"{package} {packages.get(package, 'gone')}" for package in ("sapien", "numpy")]
    found_text = f"{found.code}, layout {found.layout}, {', '.join(versions)}"
    expected = record.get("packages")
    if not expected:
        return Check(name, "warning", f"{found_text}; install.json doesn't say which packages it was made with", again)
    changed = [
        f"{package} {packages.get(package, 'gone')} (was {version})"
        for package, version in expected.items()
        if packages.get(package) != version
    ]
    if changed:
        return Check(name, "missing", "changed: " + ", ".join(changed[:3]), again)
    return Check(name, "ok", found_text)


def check_frame(state: VulkanState, limit_s: float = PROBE_LIMIT_S) -> Check:
    """Does SAPIEN render a picture that isn't blank, within the time limit?"""
    name, found = "Probe picture", installed()
    if found is None:
        return Check(name, "missing", "RoboTwin isn't installed", _INSTALL)
    environment = {**os.environ, **state.environment}
    environment.pop("PYTHONPATH", None)
    try:
        answer = subprocess.run(
            [str(found.python), "-I", str(PROBE)],
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return Check(name, "missing", f"no picture within {limit_s:.0f} s", _remedy(state))
    if answer.returncode < 0:
        how = signal.Signals(-answer.returncode).name
        return Check(name, "missing", f"SAPIEN was ended by {how}", _remedy(state))
    if answer.returncode:
        last = (answer.stderr.strip() or "no message").splitlines()[-1]
        return Check(name, "missing", last[:200], _remedy(state))
    return judge_frame(json.loads(answer.stdout.splitlines()[-1]), state)


def judge_frame(frame: dict[str, object], state: VulkanState) -> Check:
    """Is this the picture of something? Takes the probe's JSON."""
    name, spread, seconds = "Probe picture", float(str(frame["std"])), float(str(frame["seconds"]))
    # `not >` also catches NaN.
    if not spread > _BLANK_STD:
        return Check(name, "missing", f"blank picture (spread {spread:.4f}) from {frame['device']}", _remedy(state))
    return Check(name, "ok", f"{frame['device']}, {seconds:.1f} s")


def _remedy(state: VulkanState) -> str:
    return state.remedy or "mend the Vulkan driver: run scripts/vulkan.sh, or reinstall the GPU's driver"
