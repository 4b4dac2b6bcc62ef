"""Where RoboTwin is and how it is rendered: plain values that travel to worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Shader = Literal["minimal", "default", "rt"]
RenderDevice = Literal["cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class RoboTwinInstall:
    """An interpreter that can import RoboTwin's task code."""

    python: Path
    """The interpreter."""
    code: str
    """Version of the task code, e.g. ``"rlinf-robotwin-runtime==0.1.3"``."""
    layout: str
    """``"pypi"``: the packaged runtime, module ``robotwin``."""


@dataclass(frozen=True, kw_only=True)
class Assets:
    """The files RoboTwin's task code reads, and the planner that goes with them."""

    kind: Literal["stand-in", "official"]
    root: Path
    """Folder that holds ``assets/``."""
    digest: str
    planner_path: Path | None
    """File with a planner class to put in cuRobo's place; None: the installation's own."""
    planner_class: str = "StandInPlanner"


@dataclass(frozen=True, kw_only=True)
class RenderSettings:
    """How pictures are made. Part of the backend's fingerprint: other settings, other pictures."""

    shader: Shader
    """``rt`` is RoboTwin's own ray tracer; the others rasterize."""
    shadow_map_px: int
    """Edge of the directional light's shadow map; 0: no shadows. Not used by ``rt``."""
    device: RenderDevice
    """``cuda``: the GPU's Vulkan driver. ``cpu``: Mesa's lavapipe."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables the worker needs to find that driver."""

    def describe(self, device_name: str) -> str:
        """One line for fingerprints and reports."""
        if self.shader == "rt":
            return f"rt 32 samples, depth 8, oidn; {device_name}"
        shadow = f"shadow {self.shadow_map_px}" if self.shadow_map_px else "no shadow"
        return f"{self.shader}, {shadow}; {device_name}"
