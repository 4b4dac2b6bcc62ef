"""The GPUs of a node, and which of them this process may use.

The table comes from ``nvidia-smi``: it is there wherever the driver is, its answer is text that tests can replay, it
starts no CUDA context (torch would take some hundred megabytes on every GPU), and where a driver hangs it can be killed
at a deadline, which a library inside this process can't.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evalkit.core.errors import UserError
from evalkit.core.gpu import BUS_ID, VISIBLE, short_bus_id
from evalkit.pool.cuda import asked_elsewhere

FIELDS = ("index", "uuid", "pci.bus_id", "name", "memory.total", "memory.free", "mig.mode.current")
TABLE_FILE = "EVALKIT_GPU_TABLE"
"""Names a file that takes the driver's place: rows as ``nvidia-smi --query-gpu`` prints them. For tests of the pool."""
LIMIT_S = 60.0
_MIB = 1 << 20
_SLICE = re.compile(r"^\s+MIG (?P<profile>\S+)\s+Device\s+\d+:\s+\(UUID: (?P<uuid>MIG-[^)]+)\)")
_WHOLE = re.compile(r"^GPU \d+: .*\(UUID: (?P<uuid>GPU-[^)]+)\)")


@dataclass(frozen=True, kw_only=True)
class Device:
    """A GPU, or a slice of one (MIG)."""

    index: int
    """``nvidia-smi``'s number: the order of the PCI bus, neither CUDA's nor Vulkan's."""
    uuid: str
    bus_id: str
    """E.g. ``0000:3b:00``."""
    name: str
    memory_total_bytes: int = 0
    memory_free_bytes: int = 0
    is_slice: bool = False
    """A slice computes, but has no Vulkan: pictures can't be made on it."""
    node: str = ""
    """Ray's id of the node; empty on a single machine."""

    @property
    def title(self) -> str:
        """For people."""
        return f"GPU {self.index} ({self.name}, {self.uuid})"

    @property
    def can_render(self) -> bool:
        """Whether pictures can be made on it."""
        return not self.is_slice

    @property
    def environment(self) -> dict[str, str]:
        """What binds a process, and all it starts, to this device."""
        values = {VISIBLE: self.uuid, BUS_ID: self.bus_id if self.can_render else ""}
        if table := os.environ.get(TABLE_FILE):
            values[TABLE_FILE] = table
        return values


def parse_table(text: str) -> tuple[tuple[Device, bool], ...]:
    """GPUs from ``nvidia-smi``'s comma-separated answer, each with whether it is split by MIG.

    Raises:
        UserError: a row isn't as expected.
    """
    found = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if not row:
            continue
        try:
            index, uuid, bus_id, name, total, free, mig = (field.strip() for field in row)
            device = Device(
                index=int(index),
                uuid=uuid,
                bus_id=short_bus_id(bus_id),
                name=name,
                memory_total_bytes=_bytes(total),
                memory_free_bytes=_bytes(free),
            )
        except ValueError as error:
            raise UserError(f"the GPU table has a row {', '.join(row)!r} that can't be read: {error}") from error
        found.append((device, mig == "Enabled"))
    return tuple(found)


def parse_slices(text: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """MIG's slices from ``nvidia-smi -L``: UUID of the GPU -> (UUID, profile) of each."""
    found: dict[str, list[tuple[str, str]]] = {}
    whole = ""
    for line in text.splitlines():
        if match := _WHOLE.match(line):
            whole = match["uuid"]
        elif match := _SLICE.match(line):
            found.setdefault(whole, []).append((match["uuid"], match["profile"]))
    return {uuid: tuple(slices) for uuid, slices in found.items()}


def with_slices(
    table: Iterable[tuple[Device, bool]], slices: Mapping[str, Sequence[tuple[str, str]]]
) -> tuple[Device, ...]:
    """The devices that programs can use: whole GPUs, and in place of a split one its slices."""
    devices: list[Device] = []
    for device, is_split in table:
        if not is_split:
            devices.append(device)
            continue
        for uuid, profile in slices.get(device.uuid, ()):
            size = re.search(r"(\d+)gb", profile)
            memory = int(size[1]) << 30 if size else 0
            name = f"{device.name} MIG {profile}"
            devices.append(
                replace(
                    device,
                    uuid=uuid,
                    name=name,
                    memory_total_bytes=memory,
                    memory_free_bytes=memory,
                    is_slice=True,
                )
            )
    return tuple(devices)


def visible(
    devices: Sequence[Device], setting: str | None, cuda_order: Callable[[], Sequence[str]]
) -> tuple[Device, ...]:
    """The devices that ``CUDA_VISIBLE_DEVICES`` leaves, in its order.

    Args:
        devices: all of them.
        setting: the variable's value, or None if it isn't set.
        cuda_order: gives the whole GPUs' bus ids in the order in which CUDA numbers them; asked only if the setting
            has a number.

    Raises:
        UserError: the setting names a device that isn't there, or one twice.
    """
    if setting is None:
        return tuple(devices)
    chosen: list[Device] = []
    for item in (part.strip() for part in setting.split(",")):
        if item in ("", "-1", "NoDevFiles"):  # CUDA reads no further
            break
        device = _numbered(devices, item, cuda_order) if item.isdigit() else _named(devices, item)
        if device is None:
            there = ", ".join(one.uuid for one in devices) or "none"
            raise UserError(f"{VISIBLE} is {setting!r}; there is no GPU {item} here: choose from {there}")
        if device in chosen:
            raise UserError(f"{VISIBLE} is {setting!r} and names GPU {device.uuid} twice: CUDA then sees none")
        chosen.append(device)
    return tuple(chosen)


def _numbered(devices: Sequence[Device], item: str, cuda_order: Callable[[], Sequence[str]]) -> Device | None:
    order = cuda_order()
    number = int(item)
    if number >= len(order):
        return None
    return next((device for device in devices if device.bus_id == order[number]), None)


def _named(devices: Sequence[Device], item: str) -> Device | None:
    """By UUID, or by the beginning of one, which CUDA allows if it is unique."""
    found = [device for device in devices if device.uuid.lower().startswith(item.lower())]
    return found[0] if len(found) == 1 else None


def read_devices(environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """The GPUs that this process may use; empty without any.

    Args:
        environ: the environment; this process's own by default.

    Raises:
        UserError: ``CUDA_VISIBLE_DEVICES`` names what isn't there, or the driver doesn't answer.
    """
    environ = os.environ if environ is None else environ
    devices, from_driver = read_table(environ)

    def cuda_order() -> tuple[str, ...]:
        if from_driver and len(devices) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
            return tuple(bus_id for _, bus_id in asked_elsewhere(environ))
        return tuple(dict.fromkeys(device.bus_id for device in devices))

    return visible(devices, environ.get(VISIBLE), cuda_order)


def read_table(environ: Mapping[str, str]) -> tuple[tuple[Device, ...], bool]:
    """All GPUs of this node, and whether the driver was asked.

    Raises:
        UserError: the driver doesn't answer, or the file that takes its place can't be read.
    """
    if table := environ.get(TABLE_FILE):
        try:
            return tuple(device for device, _ in parse_table(Path(table).read_text())), False
        except OSError as error:
            raise UserError(f"{TABLE_FILE} names {table}, which can't be read: {error}") from error
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), False
    answer = _ask([program, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"])
    if answer is None:
        return (), True
    parsed = parse_table(answer)
    slices = parse_slices(_ask([program, "-L"]) or "") if any(is_split for _, is_split in parsed) else {}
    return with_slices(parsed, slices), True


def _ask(command: Sequence[str]) -> str | None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"nvidia-smi gave no answer within {LIMIT_S:g} s: a GPU or its driver hangs; restart the machine, or hide "
            "the GPUs with --gpus 0"
        ) from error
    return answer.stdout if answer.returncode == 0 else None


def _bytes(mebibytes: str) -> int:
    return int(mebibytes) * _MIB if mebibytes.isdigit() else 0
