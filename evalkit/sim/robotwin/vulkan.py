"""Which Vulkan drivers this machine has, and whether SAPIEN can render with one.

``python -m evalkit.sim.robotwin.vulkan`` prints one line and exits 0 if a usable driver is there, 1 if not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MINIMUM_LAVAPIPE = (23, 2)
"""Mesa before 23.2 lacks features SAPIEN asks for: it stops with ``ErrorFeatureNotPresent``."""
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)
_MESA = re.compile(rb"Mesa (\d+)\.(\d+)\.(\d+)")
Vendor = Literal["nvidia", "lavapipe", "other"]


@dataclass(frozen=True, kw_only=True)
class Icd:
    """A Vulkan driver's manifest ("installable client driver") and the library it names."""

    manifest: Path
    vendor: Vendor
    api_version: str
    library: Path | None
    """The driver's library, or None if it can't be found."""
    mesa_version: tuple[int, int, int] | None = None
    """Mesa's version, for lavapipe."""

    @property
    def is_usable(self) -> bool:
        """Whether SAPIEN can render with it, as far as files tell."""
        if self.library is None:
            return False
        if self.vendor == "lavapipe":
            return self.mesa_version is not None and self.mesa_version[:2] >= MINIMUM_LAVAPIPE
        return self.vendor == "nvidia"

    def describe(self) -> str:
        """E.g. ``lavapipe, Mesa 25.0.7 (lvp_icd.json)``."""
        version = f", Mesa {'.'.join(map(str, self.mesa_version))}" if self.mesa_version else ""
        missing = "" if self.library else ", library missing"
        return f"{self.vendor}{version}{missing} ({self.manifest.name})"


@dataclass(frozen=True, kw_only=True)
class VulkanState:
    """What there is to render with."""

    icds: tuple[Icd, ...]
    gpus: tuple[str, ...]
    """Names of NVIDIA GPUs, as ``nvidia-smi -L`` lists them."""
    is_ok: bool
    found: str
    remedy: str
    """One line; empty if nothing needs doing."""

    uses_gpu: bool = False
    """Whether pictures are made on a GPU."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables a simulator process needs so that it takes this driver.

        With a GPU whose Vulkan part is missing, SAPIEN would insist on NVIDIA's driver; lavapipe must be named then.
        """
        lavapipe = next((icd for icd in self.icds if icd.vendor == "lavapipe" and icd.is_usable), None)
        if not self.gpus or self.uses_gpu or lavapipe is None:
            return {}
        return {"VK_ICD_FILENAMES": str(lavapipe.manifest)}


def find_icds(environ: Mapping[str, str] | None = None, folders: Iterable[Path] | None = None) -> tuple[Icd, ...]:
    """Every driver manifest the Vulkan loader would see, in its order.

    Args:
        environ: the environment; ``VK_DRIVER_FILES`` or ``VK_ICD_FILENAMES`` in it replaces the search.
        folders: folders searched instead of the loader's own.
    """
    environ = os.environ if environ is None else environ
    forced = environ.get("VK_DRIVER_FILES") or environ.get("VK_ICD_FILENAMES")
    if forced:
        paths = [Path(item) for item in forced.split(os.pathsep) if item]
    else:
        searched = _manifest_folders(environ) if folders is None else folders
        paths = [path for folder in searched if folder.is_dir() for path in sorted(folder.glob("*.json"))]
    return tuple(_read_icd(path) for path in dict.fromkeys(paths))


def list_gpus() -> tuple[str, ...]:
    """NVIDIA GPUs, one text each (``GPU 0: NVIDIA H200 (UUID: ...)``); empty if there is none or no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    answer = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode != 0:
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip().startswith(("GPU ", "MIG ")))


def examine() -> VulkanState:
    """Look at this machine: drivers, GPUs, and what to do if nothing can render."""
    return judge(find_icds(), list_gpus(), has_nvidia_library=_loads("libGLX_nvidia.so.0"), environ=os.environ)


def judge(
    icds: tuple[Icd, ...], gpus: tuple[str, ...], *, has_nvidia_library: bool, environ: Mapping[str, str]
) -> VulkanState:
    """Decide from facts alone; see ``examine``."""

    def state(is_ok: bool, found: str, remedy: str = "", *, uses_gpu: bool = False) -> VulkanState:
        return VulkanState(icds=icds, gpus=gpus, is_ok=is_ok, found=found, remedy=remedy, uses_gpu=uses_gpu)

    usable = {icd.vendor: icd for icd in icds if icd.is_usable}
    listed = "; ".join(icd.describe() for icd in icds if icd.vendor != "other") or f"{len(icds)} other drivers"
    forced = environ.get("VK_DRIVER_FILES") or environ.get("VK_ICD_FILENAMES")
    if gpus:
        is_whole = all(gpu.startswith("GPU ") for gpu in gpus)
        if is_whole and "nvidia" in usable:
            return state(True, usable["nvidia"].describe(), uses_gpu=True)
        if is_whole and has_nvidia_library and not forced:
            return state(True, "nvidia, libGLX_nvidia.so.0 through SAPIEN's own manifest", uses_gpu=True)
        remedy = _nvidia_remedy(gpus, has_nvidia_library, environ)
        if "lavapipe" in usable:
            return state(True, f"{usable['lavapipe'].describe()}; the GPU isn't used for pictures", remedy)
        return state(False, listed, remedy)
    if "lavapipe" in usable:
        return state(True, usable["lavapipe"].describe())
    old = next((icd for icd in icds if icd.vendor == "lavapipe" and icd.mesa_version), None)
    if old:
        return state(False, old.describe(), "install Mesa 23.2 or newer (mesa-vulkan-drivers): run scripts/vulkan.sh")
    if forced:
        return state(False, listed, f"the environment allows only {forced}: unset VK_DRIVER_FILES and VK_ICD_FILENAMES")
    return state(False, listed if icds else "no driver", "install mesa-vulkan-drivers: run scripts/vulkan.sh")


def _nvidia_remedy(gpus: tuple[str, ...], has_library: bool, environ: Mapping[str, str]) -> str:
    if any(gpu.startswith("MIG ") for gpu in gpus):
        return "a GPU split by MIG has no Vulkan: use a whole GPU to render on it"
    capabilities = environ.get("NVIDIA_DRIVER_CAPABILITIES", "")
    if capabilities and not {"all", "graphics"} & set(capabilities.split(",")):
        return f"NVIDIA_DRIVER_CAPABILITIES is {capabilities!r}: start the container with it set to all"
    if not has_library:
        return "libGLX_nvidia.so.0 is missing: install the driver's libnvidia-gl package"
    return "VK_ICD_FILENAMES or VK_DRIVER_FILES hides NVIDIA's driver: unset it"


def _manifest_folders(environ: Mapping[str, str]) -> list[Path]:
    user = Path(environ.get("HOME", "/"))
    roots = [
        Path(environ.get("XDG_CONFIG_HOME") or user / ".config"),
        *(Path(item) for item in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")),
        Path("/etc"),
        Path(environ.get("XDG_DATA_HOME") or user / ".local/share"),
        *(Path(item) for item in (environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")),
    ]
    return [root / "vulkan" / "icd.d" for root in dict.fromkeys(roots)]


def _read_icd(manifest: Path) -> Icd:
    try:
        content = json.loads(manifest.read_text())["ICD"]
        library, api_version = str(content["library_path"]), str(content.get("api_version", ""))
    except (OSError, ValueError, KeyError, TypeError):
        # The loader skips such a manifest as well; it is listed so that a person sees it.
        return Icd(manifest=manifest, vendor=_vendor(manifest.name), api_version="", library=None)
    vendor = _vendor(library)
    path = _find_library(library, manifest)
    version = _mesa_version(path) if vendor == "lavapipe" and path else None
    return Icd(manifest=manifest, vendor=vendor, api_version=api_version, library=path, mesa_version=version)


def _vendor(text: str) -> Vendor:
    name = text.lower()
    if "nvidia" in name:
        return "nvidia"
    return "lavapipe" if "lvp" in name or "lavapipe" in name else "other"


def _find_library(library: str, manifest: Path) -> Path | None:
    if "/" in library:
        path = (manifest.parent / library).resolve()
        return path if path.exists() else None
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *_LIBRARY_FOLDERS]
    found = next((Path(folder) / library for folder in folders if folder and (Path(folder) / library).exists()), None)
    # A library the linker finds by other means (ld.so.conf) has no path we know; its name stands for it.
    return found or (Path(library) if _loads(library) else None)


def _loads(library: str) -> bool:
    # In a process of its own: loading a GPU driver starts threads and takes memory.
    code = f"import ctypes; ctypes.CDLL({library!r})"
    return (
        subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, timeout=60, check=False).returncode == 0
    )


def _mesa_version(library: Path) -> tuple[int, int, int] | None:
    if not library.is_file():
        return None
    match = _MESA.search(library.read_bytes())
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def main() -> int:
    """Print the state in one line; 0 if a driver is usable."""
    state = examine()
    print(state.found + (f" ({state.remedy})" if state.remedy else ""))
    return 0 if state.is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
