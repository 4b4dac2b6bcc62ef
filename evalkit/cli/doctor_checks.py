"""The doctor's checks that aren't RoboTwin's: Python, disk, memory, Ray, torch, assets, checkpoints."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

from evalkit import __version__
from evalkit.core.errors import EvalkitError
from evalkit.core.locations import home
from evalkit.sim.robotwin.doctor.check import Check

GIB = 1 << 30
_DISK_WARNING_BYTES, _DISK_MISSING_BYTES = 5 * GIB, GIB
_SHM_WARNING_BYTES, _SHM_MISSING_BYTES = GIB, 48 << 20
"""Each simulator worker keeps 8 MiB of pictures there, and Ray puts its object store there if it fits."""


def check_python() -> Check:
    """The running interpreter."""
    found = f"{platform.python_version()}, evalkit {__version__}"
    if sys.platform != "linux":
        return Check(
            "Python", "missing", f"{found} on {sys.platform}", "SAPIEN and RoboTwin run on Linux: use a Linux machine"
        )
    return Check("Python", "ok", found)


def check_disk(folder: Path | None = None) -> Check:
    """Free space where evalkit installs."""
    path = _existing(folder or home())
    free = shutil.disk_usage(path).free
    found = f"{free / GIB:.1f} GiB free in {path}"
    if not os.access(path, os.W_OK):
        return Check("Disk", "missing", f"{path} isn't writable", "set EVALKIT_HOME to a folder you may write to")
    if free < _DISK_MISSING_BYTES:
        return Check("Disk", "missing", found, "free some space, or set EVALKIT_HOME to a larger disk")
    if free < _DISK_WARNING_BYTES:
        return Check("Disk", "warning", found, "videos and demonstrations need more: free some space")
    return Check("Disk", "ok", found)


def check_shared_memory(folder: Path = Path("/dev/shm")) -> Check:
    """Size of the shared memory that pictures travel through."""
    name = str(folder)
    if not folder.is_dir():
        return Check(name, "missing", "not there", "mount a tmpfs on it (mount -t tmpfs tmpfs /dev/shm)")
    usage = shutil.disk_usage(folder)
    found = f"{usage.free / GIB:.2f} of {usage.total / GIB:.2f} GiB free"
    remedy = "give the container more: docker run --shm-size=4g"
    if usage.free < _SHM_MISSING_BYTES:
        return Check(name, "missing", found, remedy)
    return Check(name, "warning", found, remedy) if usage.free < _SHM_WARNING_BYTES else Check(name, "ok", found)


def check_file_locks(folder: Path | None = None) -> Check:
    """Whether a second writer is kept out of a locked file."""
    path = _existing(folder or home())
    if not os.access(path, os.W_OK):
        return Check("File locks", "missing", f"{path} isn't writable", "set EVALKIT_HOME to a folder you may write to")
    with tempfile.NamedTemporaryFile(dir=path, prefix=".locks-") as first, open(first.name, "rb") as second:
        try:
            fcntl.flock(first.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return Check("File locks", "warning", f"none in {path}: {error.strerror}", "don't start one run twice")
        try:
            fcntl.flock(second.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Check("File locks", "ok", f"work in {path}")
    return Check("File locks", "warning", f"don't keep others out in {path}", "don't start one run twice")


def check_ray() -> Check:
    """Ray, which spreads trials over processes and machines."""
    try:
        import ray
    except Exception as error:
        return Check("Ray", "missing", f"import fails: {error}", "pip install -r requirements/evalkit.lock")
    return Check("Ray", "ok", ray.__version__)


def check_torch(gpus: tuple[str, ...]) -> Check:
    """torch, and whether it sees the GPUs the driver lists."""
    try:
        import torch
    except Exception as error:
        return Check("torch", "missing", f"import fails: {error}", "pip install -r requirements/evalkit.lock")
    with warnings.catch_warnings(record=True) as caught:
        # torch explains in a warning why a driver can't be used.
        warnings.simplefilter("always")
        devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if devices:
        return Check("torch", "ok", f"{torch.__version__}, {len(devices)} x {devices[0]}")
    if not gpus:
        return Check("torch", "ok", f"{torch.__version__}, no GPU")
    if torch.version.cuda is None:
        remedy = "this is the CPU build: delete .venv and run `make setup` again"
    else:
        remedy = str(caught[-1].message).splitlines()[0] if caught else "look at CUDA_VISIBLE_DEVICES"
    return Check("torch", "warning", f"{torch.__version__} doesn't see {len(gpus)} GPU(s)", remedy)


def check_standin() -> Check:
    """The stand-in assets."""
    from evalkit.standin import build

    try:
        found = build.installed()
    except EvalkitError as error:
        return Check("Stand-in assets", "missing", str(error), "run `evalkit standin build`")
    if found is None:
        return Check("Stand-in assets", "missing", "not built", "run `evalkit standin build`")
    return Check("Stand-in assets", "ok", f"{found.digest[:12]} in {found.root}")


def check_checkpoint(name: str) -> Check:
    """A checkpoint ``evalkit run --ckpt NAME`` would find."""
    from evalkit.policy.checkpoint import resolve

    try:
        found = resolve(name)
    except EvalkitError as error:
        return Check("Checkpoint", "missing", str(error), "give evalkit run another --ckpt, or train one")
    return Check("Checkpoint", "ok", f"{found.path} ({found.adapter}, {found.digest[:12]})")


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
