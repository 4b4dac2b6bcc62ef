"""Which GPU SAPIEN renders on. Its own numbers are CUDA's, so the PCI bus says which one is meant."""

from __future__ import annotations

from typing import Any, Optional


def render_device(kind: str, bus_id: Optional[str]) -> Any:
    """SAPIEN's device.

    Args:
        kind: ``"cuda"`` or ``"cpu"``.
        bus_id: PCI bus id of the GPU, such as ``0000:3b:00``; None: whichever SAPIEN counts first.

    Raises:
        RuntimeError: it isn't there, or can't render.
    """
    import sapien

    if kind != "cuda":
        return sapien.Device("cpu")
    if bus_id is None:
        return sapien.Device("cuda")
    device = sapien.Device("pci:" + bus_id + ".0")
    # Where SAPIEN (3.0.3) finds no such id it takes any device on bus 0: what it gives must be looked at.
    if bus_of(device) != bus_id:
        raise RuntimeError(
            "SAPIEN has no device at PCI {}, it gives {} at {}".format(bus_id, device.name, bus_of(device))
        )
    if not device.can_render():
        raise RuntimeError("{} at PCI {} has no Vulkan: pictures can't be made on it".format(device.name, bus_id))
    return device


def bus_of(device: Any) -> Optional[str]:
    """PCI bus id of a device as evalkit spells it, or None for the CPU."""
    text = device.pci_string
    return text.lower().rsplit(".", 1)[0] if text else None
