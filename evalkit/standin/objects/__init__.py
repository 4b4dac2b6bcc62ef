"""Stand-in objects, one function each.

Colours follow the object descriptions from which RoboTwin writes its instructions, so that "the orange bottle" is
orange. Sizes are ours: no released mesh was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from evalkit.standin.model import Model
from evalkit.standin.objects import clutter, food, tools, vessels, wear

NEEDED: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "001_bottle": tuple(range(20)),
        "002_bowl": (3,),
        "005_french-fries": (0, 1),
        "006_hamburg": tuple(range(6)),
        "008_tray": tuple(range(4)),
        "020_hammer": (0,),
        "041_shoe": tuple(range(10)),
        "050_bell": (0, 1),
        "102_roller": (0, 2),
    }
)
"""Model name → ids that the stand-in tasks draw. Blocks and mats are made by RoboTwin's code."""


def all_models() -> Iterator[Model]:
    """Every model, in a fixed order."""
    for module in (tools, food, wear, vessels, clutter):
        yield from module.models()


def files() -> dict[str, bytes]:
    """Contents of ``assets/objects`` by relative path."""
    contents: dict[str, bytes] = {}
    for model in all_models():
        contents.update(model.files())
    contents.update(clutter.item_files())
    return contents
