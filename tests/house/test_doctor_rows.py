"""Each row of the doctor's report says what is wrong and what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalkit.cli import doctor_checks as own
from evalkit.sim.robotwin.doctor import checks
from evalkit.sim.robotwin.layout import RoboTwinInstall
from evalkit.sim.robotwin.vulkan import Icd, VulkanState, find_icds, judge

GPU = ("GPU 0: NVIDIA H200 (UUID: GPU-1)",)
STATE = VulkanState(icds=(), gpus=(), is_ok=True, found="x", remedy="")


def icd(vendor, mesa=None, library=Path("/lib/x.so")):
    return Icd(
        manifest=Path(f"/icd.d/{vendor}.json"), vendor=vendor, api_version="1.3", library=library, mesa_version=mesa
    )


LAVAPIPE, NVIDIA, OTHER = icd("lavapipe", (25, 0, 7)), icd("nvidia"), icd("other")


@pytest.mark.parametrize(
    ("icds", "gpus", "library", "environ", "is_ok", "uses_gpu", "remedy"),
    [
        ((LAVAPIPE, OTHER), (), False, {}, True, False, ""),
        ((NVIDIA, LAVAPIPE), GPU, True, {}, True, True, ""),
        ((), GPU, True, {}, True, True, ""),
        ((), (), False, {}, False, False, "install mesa-vulkan-drivers"),
        ((OTHER,), (), False, {}, False, False, "install mesa-vulkan-drivers"),
        ((icd("lavapipe", (22, 3, 6)),), (), False, {}, False, False, "install Mesa 23.2 or newer"),
        ((icd("lavapipe", None, None),), (), False, {}, False, False, "install mesa-vulkan-drivers"),
        ((LAVAPIPE,), GPU, False, {}, True, False, "libGLX_nvidia.so.0 is missing"),
        ((), GPU, False, {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}, False, False, "NVIDIA_DRIVER_CAPABILITIES"),
        ((NVIDIA,), (*GPU, "MIG 1g.18gb Device 0: (UUID: MIG-1)"), True, {}, False, False, "MIG"),
        ((LAVAPIPE,), GPU, True, {"VK_ICD_FILENAMES": "/lvp.json"}, True, False, "unset it"),
        ((), (), False, {"VK_DRIVER_FILES": "/gone.json"}, False, False, "unset VK_DRIVER_FILES"),
    ],
)
def test_vulkan_is_judged_by_cause(icds, gpus, library, environ, is_ok, uses_gpu, remedy):
    state = judge(icds, gpus, has_nvidia_library=library, environ=environ)
    assert (state.is_ok, state.uses_gpu) == (is_ok, uses_gpu)
    assert remedy in state.remedy
    assert bool(remedy) == bool(state.remedy)
    assert checks.check_vulkan(state).status == ("missing" if not is_ok else "warning" if remedy else "ok")


def test_lavapipe_is_named_to_the_simulator_only_if_a_gpu_would_mislead_it():
    def environment(icds, gpus, library=False):
        return judge(icds, gpus, has_nvidia_library=library, environ={}).environment

    assert environment((LAVAPIPE,), ()) == {}
    assert environment((LAVAPIPE,), GPU) == {"VK_ICD_FILENAMES": "/icd.d/lavapipe.json"}
    assert environment((LAVAPIPE, NVIDIA), GPU) == {}


def test_manifests_are_read_as_the_loader_would(tmp_path):
    library = tmp_path / "libvulkan_lvp.so"
    library.write_bytes(b"\x7fELF junk Mesa 23.2.1-1ubuntu3 (LLVM 15) junk")
    good = tmp_path / "lvp_icd.json"
    good.write_text(json.dumps({"ICD": {"library_path": "./libvulkan_lvp.so", "api_version": "1.3.255"}}))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "nvidia_icd.json").write_text(json.dumps({"ICD": {"library_path": "./gone.so"}}))
    broken, lavapipe, nvidia = find_icds({}, folders=[tmp_path])
    assert lavapipe.describe() == "lavapipe, Mesa 23.2.1 (lvp_icd.json)"
    assert lavapipe.is_usable
    assert [broken.is_usable, nvidia.is_usable] == [False, False]
    assert "library missing" in nvidia.describe()
    assert find_icds({"VK_ICD_FILENAMES": str(good)}, folders=[Path("/nowhere")]) == (lavapipe,)


@pytest.mark.parametrize(("spread", "status"), [(0.0, "missing"), (float("nan"), "missing"), (0.09, "ok")])
def test_a_blank_picture_is_not_a_picture(spread, status):
    assert checks.judge_frame({"device": "llvmpipe", "std": spread, "seconds": 1.0}, STATE).status == status


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("kill -SEGV $$", "SAPIEN was ended by SIGSEGV"),
        ("sleep 30", "no picture within 1 s"),
        ("echo boom >&2; exit 3", "boom"),
    ],
)
def test_a_probe_that_dies_or_hangs_is_reported(script, found, tmp_path, monkeypatch):
    python = tmp_path / "python"
    # `exec` so that the time limit's kill reaches the sleeping process itself.
    python.write_text(f"#!/bin/sh\n{script.replace('sleep', 'exec sleep')}\n")
    python.chmod(0o755)
    monkeypatch.setattr(checks, "installed", lambda: RoboTwinInstall(python=python, code="c", layout="pypi"))
    row = checks.check_frame(STATE, limit_s=1.0)
    assert (row.status, row.found) == ("missing", found)
    assert row.remedy


def test_a_changed_package_is_found(tmp_path, monkeypatch):
    record = {"packages": {"numpy": "1.26.4", "sapien": "3.0.3"}}
    monkeypatch.setattr(checks, "read_record", lambda: record)
    monkeypatch.setattr(checks, "installed", lambda: RoboTwinInstall(python=tmp_path, code="c", layout="pypi"))
    monkeypatch.setattr(checks, "list_packages", lambda python: {"numpy": "2.4.6", "sapien": "3.0.3"})
    row = checks.check_interpreter()
    assert row.status == "missing"
    assert "numpy 2.4.6 (was 1.26.4)" in row.found
    assert "--force" in row.remedy
    monkeypatch.setattr(checks, "list_packages", lambda python: record["packages"])
    assert checks.check_interpreter().status == "ok"
    monkeypatch.setattr(checks, "read_record", dict)
    row = checks.check_interpreter()
    assert row.status == "warning", "it runs, but nothing says whether it is as it was made"
    assert "sapien 3.0.3" in row.found
    assert "--force" in row.remedy


@pytest.mark.parametrize(
    ("free_gib", "disk", "memory"),
    [(0.03, "missing", "missing"), (0.5, "missing", "warning"), (3, "warning", "ok"), (50, "ok", "ok")],
)
def test_disk_and_shared_memory_have_limits(free_gib, disk, memory, tmp_path, monkeypatch):
    usage = SimpleNamespace(free=int(free_gib * own.GIB), total=100 * own.GIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert own.check_disk(tmp_path).status == disk
    assert own.check_shared_memory(tmp_path).status == memory
    assert own.check_shared_memory(tmp_path / "gone").status == "missing"


def test_file_locks_are_tried_out(tmp_path, monkeypatch):
    assert own.check_file_locks(tmp_path / "not/yet/there").status == "ok"
    monkeypatch.setattr(own.fcntl, "flock", lambda descriptor, operation: None)
    assert own.check_file_locks(tmp_path).status == "warning"
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_torch_does_not_see_is_a_warning(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert own.check_torch(()).status == "ok"
    row = own.check_torch(GPU)
    assert row.status == "warning"
    assert row.remedy
