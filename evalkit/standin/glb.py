"""Binary glTF 2.0, the few features that SAPIEN's loader needs: triangles, normals, one colour a part.

Written here because the bytes are hashed into the identity of the generated world: an exporter that changes with
its release would change what a result says about itself.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalkit.standin.meshes import Mesh


@dataclass(frozen=True)
class Paint:
    """A surface.

    Attributes:
        rgb: base colour, linear, 0 to 1.
        roughness: 0 mirror to 1 matt.
        metallic: 0 or up to 1 for bare metal.
    """

    rgb: tuple[float, float, float]
    roughness: float = 0.6
    metallic: float = 0.0


@dataclass(frozen=True)
class Part:
    """A mesh with its paint."""

    mesh: Mesh
    paint: Paint


def encode(parts: Sequence[Part]) -> bytes:
    """One .glb file with a node, a mesh and a material for each part."""
    blob = bytearray()
    views: list[dict[str, int]] = []
    accessors: list[dict[str, object]] = []

    def store(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], component: int, kind: str, target: int) -> int:
        data = np.ascontiguousarray(array)
        views.append({"buffer": 0, "byteOffset": len(blob), "byteLength": data.nbytes, "target": target})
        blob.extend(data.tobytes())
        blob.extend(b"\0" * (-len(blob) % 4))
        accessor: dict[str, object] = {"bufferView": len(views) - 1, "componentType": component, "type": kind}
        accessor["count"] = data.size if kind == "SCALAR" else len(data)
        if kind == "VEC3":
            accessor["min"], accessor["max"] = data.min(0).tolist(), data.max(0).tolist()
        accessors.append(accessor)
        return len(accessors) - 1

    meshes, materials = [], []
    for k, part in enumerate(parts):
        position = store(part.mesh.vertices_m.round(6).astype("<f4"), 5126, "VEC3", 34962)
        normal = store(part.mesh.normals.round(4).astype("<f4"), 5126, "VEC3", 34962)
        index = store(part.mesh.faces.astype("<u4").ravel(), 5125, "SCALAR", 34963)
        attributes = {"POSITION": position, "NORMAL": normal}
        meshes.append({"primitives": [{"attributes": attributes, "indices": index, "material": k}]})
        surface = {
            "baseColorFactor": [*(round(c, 4) for c in part.paint.rgb), 1.0],
            "metallicFactor": part.paint.metallic,
            "roughnessFactor": part.paint.roughness,
        }
        materials.append({"pbrMetallicRoughness": surface})
    document = {
        "asset": {"version": "2.0", "generator": "evalkit"},
        "scene": 0,
        "scenes": [{"nodes": list(range(len(meshes)))}],
        "nodes": [{"mesh": k, "name": f"part{k}"} for k in range(len(meshes))],
        "meshes": meshes,
        "materials": materials,
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(blob)}],
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    total = 12 + 8 + len(text) + 8 + len(blob)
    header = struct.pack("<4sII", b"glTF", 2, total) + struct.pack("<I4s", len(text), b"JSON")
    return header + text + struct.pack("<I4s", len(blob), b"BIN\0") + bytes(blob)
