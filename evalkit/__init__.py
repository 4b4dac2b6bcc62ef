"""evalkit: evaluate bimanual robot policies on RoboTwin 2.0, with numbers that say what they mean."""

from __future__ import annotations

__version__ = "0.1.0"
