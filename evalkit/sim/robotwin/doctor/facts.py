"""What the doctor's judgements of an installation rest on: facts gathered on this machine, and nothing decided."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.gpu import short_bus_id
from evalkit.sim.robotwin.assets import ROBOT
from evalkit.sim.robotwin.interpreter import clean_environment
from evalkit.sim.robotwin.layout import RoboTwinInstall

PROBE = Path(__file__).with_name("probe_gpu.py")
_LIMIT_S = 180.0
_FIELDS = ("index", "pci.bus_id", "name", "compute_cap", "driver_version", "mig.mode.current")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU as ``nvidia-smi`` lists it, in the order of the PCI bus."""

    bus_id: str
    """E.g. ``0000:3b:00.0``."""
    name: str
    compute_capability: tuple[int, int]
    driver: str
    is_split: bool
    """By MIG."""


@dataclass(frozen=True, kw_only=True)
class Accelerators:
    """What RoboTwin's interpreter sees of the GPUs."""

    torch: str
    """Version; empty without torch."""
    torch_cuda: str
    """CUDA version that torch was built for; empty for a CPU build."""
    architectures: tuple[str, ...]
    """What torch has kernels for: ``sm_90`` and the like."""
    cuda_bus_ids: tuple[str, ...]
    """GPUs in CUDA's order."""
    vulkan: tuple[tuple[str, int, bool], ...]
    """Vulkan's devices in its order: name, CUDA's number for it or -1, whether it traces rays."""
    error: str = ""


def read_gpus() -> tuple[Gpu, ...]:
    """NVIDIA's GPUs; empty if there is none or no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return parse_gpus(answer.stdout) if answer.returncode == 0 else ()


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """GPUs from ``nvidia-smi``'s comma-separated answer."""
    found = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(_FIELDS):
            continue
        _, bus_id, name, capability, driver, mig = (field.strip() for field in row)
        major, _, minor = capability.partition(".")
        found.append(
            Gpu(
                bus_id=short_bus_id(bus_id),
                name=name,
                compute_capability=(int(major), int(minor)) if minor.isdigit() else (0, 0),
                driver=driver,
                is_split=mig == "Enabled",
            )
        )
    return tuple(found)


def read_accelerators(install: RoboTwinInstall, environment: Mapping[str, str]) -> Accelerators:
    """Ask RoboTwin's interpreter.

    Args:
        install: the interpreter.
        environment: variables it needs to find the Vulkan driver.
    """
    nothing = Accelerators(torch="", torch_cuda="", architectures=(), cuda_bus_ids=(), vulkan=())
    try:
        answer = subprocess.run(
            [str(install.python), str(PROBE)],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
            env={**clean_environment(), **environment},
        )
    except subprocess.TimeoutExpired:
        return _with_error(nothing, f"no answer within {_LIMIT_S:.0f} s")
    if answer.returncode:
        last = (answer.stderr.strip() or "no message").splitlines()[-1]
        return _with_error(nothing, f"ended with {answer.returncode}: {last[:160]}")
    told = json.loads(answer.stdout.splitlines()[-1])
    return Accelerators(
        torch=told["torch"],
        torch_cuda=told["torch_cuda"],
        architectures=tuple(told["architectures"]),
        cuda_bus_ids=tuple(short_bus_id(item) for item in told["bus_ids"]),
        vulkan=parse_vulkan(told["vulkan"]),
    )


def parse_vulkan(summary: str) -> tuple[tuple[str, int, bool], ...]:
    """Devices from SAPIEN's summary: name, CUDA's number or -1, whether it traces rays."""
    found = []
    for block in re.split(r"(?m)^\s*GPU:\s*", summary)[1:]:
        values = dict(re.findall(r"(?m)^\s*(\w+):?[ \t]+(-?\d+)\s*$", block))
        found.append((block.splitlines()[0].strip(), int(values.get("cudaId", -1)), values.get("rayTrace") == "1"))
    return tuple(found)


def read_robot_files(root: Path, layout: str) -> dict[str, str | None]:
    """Text of the robot's files that RoboTwin gives to cuRobo; None for one that is missing."""
    ending = "_tmp.yml" if layout == "pypi" else ".yml"
    names = [f"curobo_{arm}{ending}" for arm in ("left", "right")]
    folder = root / "assets" / ROBOT
    return {name: (folder / name).read_text() if (folder / name).is_file() else None for name in names}


def _with_error(nothing: Accelerators, error: str) -> Accelerators:
    from dataclasses import replace

    return replace(nothing, error=error)
