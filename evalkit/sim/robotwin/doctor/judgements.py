"""The doctor's judgements of a RoboTwin installation: from facts alone to a row with its remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalkit.sim.robotwin.assets import ROBOT, AssetReport
from evalkit.sim.robotwin.checkout import Checkout
from evalkit.sim.robotwin.doctor.check import Check
from evalkit.sim.robotwin.doctor.facts import Accelerators, Gpu

PINNED: Mapping[str, str] = {"sapien": "3.0.0b1", "mplib": "0.2.1"}
"""RoboTwin's requirements (script/requirements.txt at 13c3c47 and cf47ab5)."""
CUROBO, WARP = "0.7", "1.12.0"
"""What RoboTwin's set-up script installs: cuRobo v0.7.8 and warp-lang."""
_VIRTUAL = re.compile(r"\b(GRID|vGPU)\b|-\d+[ABCQ]$")
_PATH = re.compile(r"(?<![\w$}./])/[\w.+\-]+(?:/[\w.+\- ]+)*")


def judge_code(found: Checkout, differences: Sequence[str]) -> Check:
    """Is the task code a release, unmodified, with the settings evalkit uses?"""
    name, text = "Task code", f"{found.code}, layout {found.layout}"
    if found.changed:
        files = _some(found.changed)
        return Check(
            name, "warning", f"{text}: {files} changed", "no leaderboard number with it: git stash, or a fresh clone"
        )
    if differences:
        remedy = "evalkit uses the official values: a changed setting needs a name and a file in task_configs/"
        return Check(name, "warning", f"{text}; {_some(differences, 2)}", remedy)
    if found.commit is None and not found.release:
        return Check(name, "warning", text, "no leaderboard number with it: clone RoboTwin with git")
    return Check(name, "ok", text)


def judge_assets(report: AssetReport, tasks: int) -> Check:
    """Are the assets RoboTwin's, and complete?"""
    name, text = "RoboTwin's assets", report.describe()
    if tasks < 50:
        text += f"; {tasks} of 50 tasks can be built"
    if not tasks:
        return Check(name, "missing", text, "download objects.zip with RoboTwin's script/_download_assets.sh")
    if report.kind == "official":
        return Check(name, "ok", text)
    if report.kind == "stand-in":
        return Check(name, "warning", text, "no leaderboard number with them: download RoboTwin's own")
    return Check(name, "warning", text, "no leaderboard number with them: download the folders named again")


def judge_robot_files(root: Path, layout: str, texts: Mapping[str, str | None]) -> Check:
    """Do the planner's files of the robot name files that are there, and here?"""
    name, script = "Robot's YAML", "scripts" if layout == "main" else "script"
    write = f"cd {root} && python {script}/update_embodiment_config_path.py"
    gone = [file for file, text in texts.items() if text is None]
    if gone:
        remedy = "download embodiments.zip again" if layout == "pypi" else write
        return Check(name, "missing", f"{', '.join(gone)} missing in assets/{ROBOT}", remedy)
    for file, text in texts.items():
        for path in foreign_paths(root, text or ""):
            what = (
                "names a path of another place" if not path.startswith(str(root)) else "names a file that isn't there"
            )
            return Check(name, "missing", f"{file} {what}: {path}", write)
    return Check(name, "ok", f"{', '.join(texts)} in {root / 'assets' / ROBOT}")


def foreign_paths(root: Path, text: str) -> list[str]:
    """Absolute paths in a YAML file that don't exist, or lie outside ``root``."""
    content = "\n".join(line.partition(" #")[0] for line in text.splitlines() if not line.lstrip().startswith("#"))
    found = [match.strip() for match in _PATH.findall(content.replace("${ASSETS_PATH}", ""))]
    inside = [path for path in found if path.count("/") > 1]
    return [
        path
        for path in inside
        # what was ``${ASSETS_PATH}/assets/...`` is relative to the root by definition
        if not (path.startswith("/assets/") and (root / path[1:]).exists())
        and not (Path(path).is_relative_to(root) and Path(path).exists())
    ]


def judge_packages(version: Sequence[int], packages: Mapping[str, str], *, has_curobo: bool) -> Check:
    """Are the packages those RoboTwin asks for? Other versions run, and give other numbers."""
    name = "Its interpreter"
    text = f"Python {'.'.join(map(str, version))}, " + ", ".join(
        f"{package} {packages[package]}" for package in ("sapien", "mplib", "numpy", "torch") if package in packages
    )
    curobo = packages.get("nvidia-curobo", "unknown" if has_curobo else "none")
    text += f", cuRobo {curobo}"
    if has_curobo and curobo != "unknown" and not curobo.startswith(CUROBO):
        return Check(name, "missing", text, "RoboTwin is written for cuRobo v0.7.8: git checkout v0.7.8 in envs/curobo")
    other = [f"{package} {wanted}" for package, wanted in PINNED.items() if packages.get(package) != wanted]
    if has_curobo and packages.get("warp-lang", WARP) != WARP:
        other.append(f"warp-lang {WARP}")
    if other:
        return Check(name, "warning", text, f"RoboTwin asks for {' and '.join(other)}: pip install them to compare")
    if not has_curobo:
        remedy = "evalkit's planner is used, so no leaderboard number: install cuRobo as RoboTwin's set-up script does"
        return Check(name, "warning", text, remedy)
    return Check(name, "ok", text)


def judge_gpus(gpus: Sequence[Gpu], seen: Accelerators) -> Check:
    """Can RoboTwin's packages use the GPUs: not split, not virtual, of an architecture torch knows?"""
    name = "GPU"
    if not gpus:
        remedy = "RoboTwin's ray tracer and cuRobo need an NVIDIA GPU; evalkit's rasterizer and planner don't"
        return Check(name, "warning", "none", remedy)
    text = f"{len(gpus)} x {gpus[0].name}, driver {gpus[0].driver}"
    if any(gpu.is_split for gpu in gpus):
        return Check(name, "missing", f"{text}, split by MIG", "MIG has no Vulkan: use a GPU that isn't split")
    if any(_VIRTUAL.search(gpu.name) for gpu in gpus):
        remedy = "a vGPU has Vulkan only with a graphics licence (Q profile): use a whole GPU, or ask for that profile"
        return Check(name, "warning", f"{text}, virtual", remedy)
    if seen.torch and not seen.torch_cuda:
        return Check(name, "missing", f"{text}; torch {seen.torch} is a CPU build", "install torch's CUDA build there")
    strange = [gpu for gpu in gpus if seen.architectures and not _is_known(gpu.compute_capability, seen.architectures)]
    if strange:
        major, minor = strange[0].compute_capability
        remedy = f"install a torch built for sm_{major}{minor} in that interpreter, and build cuRobo again"
        return Check(name, "missing", f"{text}; torch {seen.torch} knows {', '.join(seen.architectures)}", remedy)
    return Check(name, "ok", text)


def judge_order(gpus: Sequence[Gpu], seen: Accelerators, environ: Mapping[str, str]) -> Check:
    """Do the driver, CUDA and Vulkan count the GPUs alike?"""
    name = "GPU numbers"
    if seen.error:
        return Check(name, "missing", seen.error, "mend the interpreter: python -c 'import sapien' must work in it")
    cuda_numbers = [number for _, number, _ in seen.vulkan if number >= 0]
    if gpus and not seen.cuda_bus_ids:
        hidden = environ.get("CUDA_VISIBLE_DEVICES")
        remedy = "unset CUDA_VISIBLE_DEVICES" if hidden is not None else "install the driver's libcuda, then restart"
        return Check(name, "missing", "CUDA sees no GPU", remedy)
    if gpus and not cuda_numbers:
        listed = ", ".join(device for device, _, _ in seen.vulkan) or "nothing"
        remedy = "unset VK_ICD_FILENAMES and VK_DRIVER_FILES, or name nvidia_icd.json in them"
        return Check(name, "missing", f"Vulkan sees {listed}, none of it CUDA's", remedy)
    order = {gpu.bus_id: index for index, gpu in enumerate(gpus)}
    in_bus_order = [order[bus] for bus in seen.cuda_bus_ids if bus in order]
    if in_bus_order != sorted(in_bus_order):
        remedy = "export CUDA_DEVICE_ORDER=PCI_BUS_ID, so that a number means the same GPU everywhere"
        return Check(name, "warning", f"CUDA counts the GPUs as {in_bus_order}, the driver by bus", remedy)
    if cuda_numbers != sorted(cuda_numbers):
        remedy = "give each process one GPU with CUDA_VISIBLE_DEVICES: pictures and planner then meet on the same one"
        return Check(name, "warning", f"Vulkan counts CUDA's GPUs as {cuda_numbers}", remedy)
    return Check(name, "ok", f"CUDA {len(seen.cuda_bus_ids)}, Vulkan {len(seen.vulkan)}, in one order")


def judge_ray_tracing(seen: Accelerators, gpus: Sequence[Gpu]) -> Check:
    """Does the GPU's Vulkan driver trace rays?"""
    name = "Ray tracing"
    able = [device for device, number, traces in seen.vulkan if traces and (number >= 0 or not gpus)]
    if not gpus:
        return Check(name, "warning", "no GPU", "pictures are rasterized, so no leaderboard number")
    if not able:
        remedy = "RoboTwin's shader needs VK_KHR_ray_tracing_pipeline: update NVIDIA's driver (with libnvidia-rtcore)"
        return Check(name, "missing", "the GPU's Vulkan driver doesn't trace rays", remedy)
    return Check(name, "ok", able[0])


def judge_ffmpeg(path: str | None) -> Check:
    """RoboTwin's own loop pipes its videos to ffmpeg; evalkit doesn't."""
    if path is None:
        remedy = "only RoboTwin's own loop needs it (or eval_video_log: false); evalkit writes its videos itself"
        return Check("ffmpeg", "warning", "not on PATH", remedy)
    return Check("ffmpeg", "ok", path)


REMEDIES: tuple[tuple[str, str], ...] = (
    (r"failed to find a rendering device|ErrorIncompatibleDriver|ErrorInitializationFailed", "see the row Vulkan"),
    (r"no kernel image is available|sm_\d+ is not compatible", "install a torch built for this GPU, and cuRobo again"),
    (r"cuRobo can't be imported|No module named 'curobo'", "install cuRobo v0.7.8 in that interpreter"),
    (r"has no attribute '(left|right)_planner'|cannot import name 'CuroboPlanner'", "cuRobo didn't load: see the log"),
    (r"frame_bias|KeyError: 'planner'", "the robot's YAML isn't the one written from *_tmp.yml: write it again"),
    (r"warp.*(error|version)|nvrtc", "install warp-lang 1.12.0, and the CUDA toolkit that torch was built for"),
    (r"picture is blank", "update the GPU's driver, and look at the rows Vulkan and Ray tracing"),
    (r"oidn|denoiser", "SAPIEN's denoiser doesn't load: reinstall sapien; libtbb must not be shadowed by conda's"),
    (r"out of memory|OutOfMemory", "the GPU is full: give evalkit a free one, or fewer --workers"),
    (r"No such file or directory: '[^']*assets|objaverse/list\.json", "download the assets named again"),
    (r"mobility\.urdf|model_data", "download objects.zip again: an object's file is missing"),
    (r"ModuleNotFoundError: No module named '(\w+)'", "install that package in RoboTwin's interpreter"),
    (r"gave no answer", "some cards and drivers hang: name another GPU in CUDA_VISIBLE_DEVICES, or change the driver"),
    (r"signal SIG(SEGV|ABRT|BUS|ILL)", "the driver or SAPIEN crashed: update NVIDIA's driver, then reinstall sapien"),
    (r"signal SIGKILL", "something killed it, perhaps for want of memory: see dmesg"),
)
"""What a failed trial's text says, and the remedy; the first that fits counts."""


def judge_trial(stage: str, message: str, log: str) -> Check:
    """A trial that came to its end, or broke off.

    Args:
        stage: what was done last: ``start``, ``scene``, ``plan``, ``picture``; ``done`` if nothing failed.
        message: what went wrong, or what was seen.
        log: the end of the worker's log.
    """
    name = "One trial"
    if stage == "done":
        return Check(name, "ok", message)
    text = f"{message}\n{log}"
    remedy = next((found for pattern, found in REMEDIES if re.search(pattern, text, re.IGNORECASE)), "see the log")
    return Check(name, "missing", f"{stage}: {message[:200]}", remedy)


def _is_known(capability: tuple[int, int], architectures: Sequence[str]) -> bool:
    """Whether kernels for one of the architectures run on a GPU: same major number, no newer minor; or PTX."""
    major, minor = capability
    for name in architectures:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name)
        if match is None:
            continue
        theirs = (int(match[2]), int(match[3]))
        if theirs <= (major, minor) and (match[1] == "compute" or theirs[0] == major):
            return True
    return False


def _some(names: Sequence[str], shown: int = 3) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
