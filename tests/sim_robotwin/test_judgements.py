"""Each fact about an installation gets its row, and each fault its remedy."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from robotwin_trees import make_tree, write

from evalkit.sim.robotwin.assets import AssetReport
from evalkit.sim.robotwin.checkout import Checkout
from evalkit.sim.robotwin.doctor import facts
from evalkit.sim.robotwin.doctor import judgements as judge

CHECKOUT = Checkout(root=Path("/r"), layout="main", digest="d" * 64, commit="c" * 40, changed=())
REPORT = AssetReport(kind="official", digest="d", files=9, missing=(), different=(), generated=())
H200 = facts.Gpu(bus_id="0000:3b:00", name="NVIDIA H200", compute_capability=(9, 0), driver="580.1", is_split=False)
A100 = replace(H200, bus_id="0000:86:00", name="NVIDIA A100", compute_capability=(8, 0))
SEEN = facts.Accelerators(
    torch="2.4.1",
    torch_cuda="12.1",
    architectures=("sm_50", "sm_80", "sm_86", "sm_90"),
    cuda_bus_ids=("0000:3b:00",),
    vulkan=(("NVIDIA H200", 0, True),),
)
GOOD = {"sapien": "3.0.0b1", "mplib": "0.2.1", "nvidia-curobo": "0.7.8", "warp-lang": "1.12.0"}


def expect(check, status, remedy):
    assert check.status == status, check
    assert re.search(remedy, check.remedy) if remedy else check.remedy == "", check
    assert len(check.remedy.splitlines()) <= 1


@pytest.mark.parametrize(
    ("changes", "differences", "status", "remedy"),
    [
        ({}, (), "ok", ""),
        ({"changed": ("envs/a.py",)}, (), "warning", "git stash"),
        ({}, ("step limit of click_bell is 9, here 400",), "warning", "evalkit uses the official values"),
        ({"commit": None}, (), "warning", "clone RoboTwin with git"),
    ],
)
def test_task_code(changes, differences, status, remedy):
    expect(judge.judge_code(replace(CHECKOUT, **changes), differences), status, remedy)


@pytest.mark.parametrize(
    ("changes", "tasks", "status", "remedy"),
    [
        ({}, 50, "ok", ""),
        ({"kind": "stand-in", "generated": ("objects/050_bell",)}, 50, "warning", "download RoboTwin's own"),
        ({"kind": "unverified", "missing": ("objects/050_bell",)}, 49, "warning", "download the folders named"),
        ({"kind": "unverified", "missing": ("objects/050_bell",)}, 0, "missing", "objects.zip"),
    ],
)
def test_assets(changes, tasks, status, remedy):
    expect(judge.judge_assets(replace(REPORT, **changes), tasks), status, remedy)


@pytest.mark.parametrize(
    ("text", "layout", "status", "remedy"),
    [
        (
            "robot_cfg:\n  kinematics:\n    urdf_path: {root}/assets/embodiments/aloha-agilex/urdf/arm.urdf",
            "main",
            "ok",
            "",
        ),
        ("urdf_path: ${{ASSETS_PATH}}/assets/embodiments/aloha-agilex/urdf/arm.urdf", "pypi", "ok", ""),
        ("# made in /mnt/workspace/somebody\nframe_bias: [0, 1/2, 3]", "main", "ok", ""),
        ("urdf_path: /mnt/workspace/RoboTwin/assets/a.urdf", "main", "missing", "python scripts/update_embodiment"),
        (
            "urdf_path: /mnt/workspace/RoboTwin/assets/a.urdf",
            "stable_2.0",
            "missing",
            "python script/update_embodiment",
        ),
        ("urdf_path: {root}/assets/embodiments/aloha-agilex/urdf/gone.urdf", "main", "missing", "update_embodiment"),
        (None, "main", "missing", "update_embodiment"),
        (None, "pypi", "missing", "embodiments.zip"),
    ],
)
def test_robots_yaml(tmp_path, text, layout, status, remedy):
    root = make_tree(tmp_path / "Robo Twin")
    for arm in ("left", "right"):
        path = root / f"assets/embodiments/aloha-agilex/curobo_{arm}{'_tmp' if layout == 'pypi' else ''}.yml"
        path.unlink(missing_ok=True)
        if text is not None:
            write(path, text.format(root=root))
    expect(judge.judge_robot_files(root, layout, facts.read_robot_files(root, layout)), status, remedy)


@pytest.mark.parametrize(
    ("changes", "has_curobo", "status", "remedy"),
    [
        ({}, True, "ok", ""),
        ({"nvidia-curobo": "2.0.0"}, True, "missing", "git checkout v0.7.8"),
        ({"warp-lang": "1.13.0"}, True, "warning", "warp-lang 1.12.0"),
        ({"sapien": "3.0.3"}, True, "warning", "sapien 3.0.0b1"),
        ({}, False, "warning", "install cuRobo"),
    ],
)
def test_packages(changes, has_curobo, status, remedy):
    expect(judge.judge_packages((3, 10, 12), {**GOOD, **changes}, has_curobo=has_curobo), status, remedy)


@pytest.mark.parametrize(
    ("gpus", "changes", "status", "remedy"),
    [
        ((H200,), {}, "ok", ""),
        ((), {}, "warning", "need an NVIDIA GPU"),
        ((replace(H200, is_split=True),), {}, "missing", "MIG has no Vulkan"),
        ((replace(H200, name="NVIDIA A16-8Q"),), {}, "warning", "whole GPU"),
        ((replace(H200, name="GRID V100D-16C"),), {}, "warning", "whole GPU"),
        ((H200,), {"torch_cuda": ""}, "missing", "CUDA build"),
        ((replace(H200, compute_capability=(12, 0)),), {}, "missing", "sm_120"),
        ((replace(H200, compute_capability=(8, 9)),), {}, "ok", ""),
        ((replace(H200, compute_capability=(12, 0)),), {"architectures": ("compute_90",)}, "ok", ""),
    ],
)
def test_gpus(gpus, changes, status, remedy):
    expect(judge.judge_gpus(gpus, replace(SEEN, **changes)), status, remedy)


TWO = {"cuda_bus_ids": ("0000:3b:00", "0000:86:00"), "vulkan": (("A", 0, True), ("B", 1, True))}


@pytest.mark.parametrize(
    ("gpus", "changes", "environ", "status", "remedy"),
    [
        ((H200,), {}, {}, "ok", ""),
        ((H200, A100), TWO, {}, "ok", ""),
        ((A100, H200), TWO, {}, "warning", "CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ((H200, A100), TWO | {"vulkan": (("B", 1, True), ("A", 0, True))}, {}, "warning", "CUDA_VISIBLE_DEVICES"),
        ((H200,), {"vulkan": (("llvmpipe", -1, True),)}, {}, "missing", "nvidia_icd.json"),
        ((H200,), {"cuda_bus_ids": ()}, {"CUDA_VISIBLE_DEVICES": ""}, "missing", "unset CUDA_VISIBLE_DEVICES"),
        ((H200,), {"cuda_bus_ids": ()}, {}, "missing", "libcuda"),
        ((), {"error": "ended with 1: no sapien"}, {}, "missing", "import sapien"),
        ((), {"cuda_bus_ids": (), "vulkan": (("llvmpipe", -1, True),)}, {}, "ok", ""),
    ],
)
def test_gpu_numbers(gpus, changes, environ, status, remedy):
    expect(judge.judge_order(gpus, replace(SEEN, **changes), environ), status, remedy)


@pytest.mark.parametrize(
    ("gpus", "vulkan", "status", "remedy"),
    [
        ((H200,), (("NVIDIA H200", 0, True),), "ok", ""),
        ((H200,), (("NVIDIA H200", 0, False),), "missing", "update NVIDIA's driver"),
        ((H200,), (("llvmpipe", -1, True), ("NVIDIA H200", 0, False)), "missing", "update NVIDIA's driver"),
        ((), (("llvmpipe", -1, True),), "warning", "no leaderboard number"),
    ],
)
def test_ray_tracing(gpus, vulkan, status, remedy):
    expect(judge.judge_ray_tracing(replace(SEEN, vulkan=vulkan), gpus), status, remedy)


def test_ffmpeg():
    expect(judge.judge_ffmpeg("/usr/bin/ffmpeg"), "ok", "")
    expect(judge.judge_ffmpeg(None), "warning", "eval_video_log")


@pytest.mark.parametrize(
    ("message", "log", "remedy"),
    [
        ("RuntimeError: failed to find a rendering device", "", "row Vulkan"),
        ("crash", "CUDA error: no kernel image is available for execution on the device", "torch built for this GPU"),
        ("ImportError: cuRobo can't be imported; the reason is in the log above", "", "install cuRobo v0.7.8"),
        ("'Robot' object has no attribute 'left_planner'", "", "cuRobo didn't load"),
        ("TypeError", 'self.frame_bias = yml_data["planner"]["frame_bias"]', "write it again"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: './assets/objects/same.json'",
            "",
            "download the assets",
        ),
        ("crash", "OIDN error: cannot load libOpenImageDenoise", "denoiser"),
        ("ModuleNotFoundError: No module named 'transforms3d'", "", "install that package"),
        ("the picture is blank (spread 0.00)", "", "update the GPU's driver"),
        ("the RoboTwin worker gave no answer to 'observe' within 600 s and was killed", "", "name another GPU"),
        ("the RoboTwin worker ended with signal SIGSEGV during 'reset'; log: x", "", "update NVIDIA's driver"),
        ("the RoboTwin worker ended with signal SIGKILL during 'expert'; log: x", "", "dmesg"),
        ("the RoboTwin worker gave no answer to 'expert' within 600 s", "nvrtc: error", "warp-lang"),
        ("something nobody has seen", "", "see the log"),
    ],
)
def test_a_failed_trial_gets_the_remedy_for_its_cause(message, log, remedy):
    expect(judge.judge_trial("scene", message, log), "missing", remedy)


def test_a_trial_that_went_well():
    expect(judge.judge_trial("done", "all fine", ""), "ok", "")


def test_nvidia_smis_answer_is_read():
    text = (
        "0, 00000000:3B:00.0, NVIDIA H200, 9.0, 580.95.05, Disabled\n"
        "1, 00000000:86:00.0, NVIDIA RTX 4090, 8.9, 580.95.05, [N/A]\n"
        "2, 00000000:AF:00.0, NVIDIA A100, 8.0, 580.95.05, Enabled\n"
    )
    found = facts.parse_gpus(text)
    assert [gpu.bus_id for gpu in found] == ["0000:3b:00", "0000:86:00", "0000:af:00"]
    assert [gpu.is_split for gpu in found] == [False, False, True]
    assert found[1].compute_capability == (8, 9)
    assert facts.short_bus_id("0000:3B:00.0") == found[0].bus_id


def test_sapiens_summary_is_read():
    text = (
        "GPU: NVIDIA H200\n  Supported: 1\n  Present:   0\n  cudaId:    1\n  rayTrace:  1\n  cudaMode   0\n"
        "GPU: llvmpipe (LLVM 15.0.6, 256 bits)\n  Supported: 1\n  cudaId:    -1\n  rayTrace:  0\n"
    )
    assert facts.parse_vulkan(text) == (("NVIDIA H200", 1, True), ("llvmpipe (LLVM 15.0.6, 256 bits)", -1, False))
