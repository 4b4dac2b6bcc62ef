"""The nodes of a Ray cluster: which there are, and whether they would give the driver's outcomes.

Nothing is shipped to nodes: evalkit, policies, checkpoints and RoboTwin lie on a file system that all of them see, or
are installed on each. What differs is found out before the first trial, and such a node isn't used.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalkit import __version__
from evalkit.core.errors import UserError
from evalkit.core.locations import bundled
from evalkit.core.trial import BackendFingerprint
from evalkit.pool.ray_session import on_node, ray

LOOK_LIMIT_S = 180.0
"""The look starts one simulator, from a network file system that may be cold."""
_PACKAGES = ("numpy", "ray", "torch")


@dataclass(frozen=True, kw_only=True)
class ClusterNode:
    """A node that is alive."""

    id: str
    """Ray's id."""
    name: str
    """For people: its host name, with part of the id where several nodes are on one host."""
    cpus: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """What a node is like. Made on the node."""

    host: str
    software: Mapping[str, str]
    """Name -> version or digest of everything that can change an outcome."""
    backend: Mapping[str, Any] | None
    """The fingerprint of simulators made there; None if none can be made."""
    trouble: str = ""
    """Why none can be made, or which file is missing."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Nodes that fit, and what is wrong with the others."""

    fitting: tuple[ClusterNode, ...]
    unfit: Mapping[str, str]
    """Name of a node -> why it isn't used."""

    @property
    def cpus(self) -> int:
        """CPUs of the nodes that fit."""
        return sum(node.cpus for node in self.fitting)


def cluster_nodes() -> tuple[ClusterNode, ...]:
    """The nodes that are alive, this process's first. Needs a ``ray_session``."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    here = ray.get_runtime_context().get_node_id()
    hosts = [node["NodeManagerHostname"] for node in alive]
    found = []
    for node in sorted(alive, key=lambda node: (node["NodeID"] != here, node["NodeManagerHostname"], node["NodeID"])):
        host, resources = node["NodeManagerHostname"], node["Resources"]
        name = host if hosts.count(host) == 1 else f"{host} ({node['NodeID'][:6]})"
        cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
        found.append(ClusterNode(id=node["NodeID"], name=name, cpus=cpus, gpus=gpus))
    return tuple(found)


def alive_nodes() -> frozenset[str]:
    """Ids of the nodes that are alive."""
    return frozenset(node["NodeID"] for node in ray.nodes() if node["Alive"])


def examine(
    nodes: Sequence[ClusterNode],
    fingerprint: Callable[[], BackendFingerprint],
    expected: BackendFingerprint,
    paths: Collection[Path] = (),
    limit_s: float = LOOK_LIMIT_S,
) -> Examination:
    """Look at every node, once, all at the same time.

    Args:
        nodes: the nodes.
        fingerprint: asks what simulators made on a node consist of.
        expected: what those of the driver consist of.
        paths: files and folders that every node must see: checkpoints, policy files.
        limit_s: a node that gives no answer for so long isn't used.

    Raises:
        UserError: no node fits.
    """
    look_there = ray.remote(num_cpus=0, max_retries=0)(look)
    names = tuple(str(path) for path in paths)
    answers = {
        node.id: look_there.options(scheduling_strategy=on_node(node.id)).remote(fingerprint, names) for node in nodes
    }
    until = time.monotonic() + limit_s
    ours = software()
    fitting, unfit = [], {}
    for node in nodes:
        try:
            report = ray.get(answers[node.id], timeout=max(0.0, until - time.monotonic()))
            reason = difference(report, ours, asdict(expected))
        except ray.exceptions.GetTimeoutError:
            reason = f"no answer within {limit_s:g} s"
        except ray.exceptions.RayError as error:  # another evalkit, or none, can't even read the question
            cause = getattr(error, "cause", None) or error
            reason = f"{type(cause).__name__}: {' '.join(str(cause).split())[:300]}"
        if reason:
            unfit[node.name] = reason
        else:
            fitting.append(node)
    if not fitting:
        name, reason = next(iter(unfit.items()))
        others = f"; and {len(unfit) - 1} more nodes" if len(unfit) > 1 else ""
        raise UserError(f"no node of the cluster can be used: {name}: {reason}{others}")
    return Examination(fitting=tuple(fitting), unfit=unfit)


def look(fingerprint: Callable[[], BackendFingerprint], paths: Sequence[str]) -> NodeReport:
    """Runs on a node: what is it like?"""
    host = socket.gethostname()
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        trouble = f"{missing[0]} isn't there: put it on a file system that all nodes see"
        return NodeReport(host=host, software=software(), backend=None, trouble=trouble)
    try:
        backend = asdict(fingerprint())
    except Exception as error:  # whatever it is, the node can't be used, and the driver says why
        trouble = f"no simulator: {' '.join(str(error).split())[:300] or type(error).__name__}"
        return NodeReport(host=host, software=software(), backend=None, trouble=trouble)
    return NodeReport(host=host, software=software(), backend=backend)


def difference(report: NodeReport, ours: Mapping[str, str], expected: Mapping[str, Any]) -> str:
    """In which ways a node isn't like the driver; empty if it is."""
    found = [
        f"{name} {report.software.get(name, 'missing')}, the driver's is {version}"
        for name, version in ours.items()
        if report.software.get(name) != version
    ]
    if report.trouble:
        found.append(report.trouble)
    if report.backend is not None:
        found += [
            f"{name} of simulators: {report.backend.get(name)!r}, the driver's: {value!r}"
            for name, value in expected.items()
            if report.backend.get(name) != value
        ]
    return "; ".join(found)


def software() -> dict[str, str]:
    """What of this process can change an outcome, by name: versions, and a digest of the code."""
    versions = {"Python": ".".join(platform.python_version_tuple()[:2]), "evalkit": f"{__version__} {_code_digest()}"}
    return versions | {name: importlib.metadata.version(name) for name in _PACKAGES}


@lru_cache(maxsize=1)
def _code_digest() -> str:
    hashed = hashlib.sha256()
    for folder in (Path(__file__).resolve().parents[1], bundled("policies"), bundled("task_configs")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".yml", ".yaml") and path.is_file():
                hashed.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return hashed.hexdigest()[:12]
