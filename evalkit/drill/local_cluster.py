"""Several Ray nodes on this machine, any of which can be lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

from evalkit.core.errors import HarnessError

QUICK_HEALTH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 4,
}
"""Ray's head notices within two seconds that a node is gone; by default it takes a quarter of a minute."""
STORE_BYTES = 80 * 1024 * 1024
START_LIMIT_S = 120.0
STARTED = "Ray runtime started."
"""What ``ray start`` says of each node."""


class LocalCluster:
    """Ray nodes on this machine, each started by a ``ray start`` of its own.

    Nothing of Ray may be connected from this process: where a head disappears, Ray ends every process that was
    connected to it, a minute later and without a word. (``ray.cluster_utils`` connects.)

    Args:
        cpus: of each node; the first is the head.

    Raises:
        HarnessError: a node doesn't start.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        port = _free_port()
        self.address = f"127.0.0.1:{port}"
        """Of the head."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the nodes that write to it)
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--system-config={json.dumps(QUICK_HEALTH)}"]
        self._nodes: list[subprocess.Popen[bytes]] = []
        for count in cpus:  # one after another: two at once may take each other's ports
            self._nodes.append(self._start(head if not self._nodes else [f"--address={self.address}"], count))
            self._wait_for_the_last()

    def processes(self, node: int) -> list[psutil.Process]:
        """Everything that runs on a node."""
        try:
            first = psutil.Process(self._nodes[node].pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def node_of(self, name: str) -> int | None:
        """The node on which a process of that name runs, the head apart."""
        for node in range(1, len(self._nodes)):
            if any(name in _name_of(process) for process in self.processes(node)):
                return node
        return None

    def lose(self, node: int) -> None:
        """Kill everything on a node at once."""
        processes = self.processes(node)
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(processes, timeout=5)
        self._nodes[node].wait()

    def close(self) -> None:
        """End all nodes, the head last."""
        for node in reversed(range(len(self._nodes))):
            self.lose(node)
        self._output.close()

    def _start(self, options: Sequence[str], cpus: int) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--num-cpus={cpus}", "--num-gpus=0"]
        line += [f"--object-store-memory={STORE_BYTES}", "--disable-usage-stats"]
        line += [
            "--min-worker-port=0",
            "--max-worker-port=0",
            *options,
        ]  # any free ones: the nodes share this machine's
        # A group of its own: a node that loses a part ends with signals to all its group.
        return subprocess.Popen(
            line, stdout=self._output, stderr=self._output, env=clean_environment(), start_new_session=True
        )

    def _wait_for_the_last(self) -> None:
        until = time.monotonic() + START_LIMIT_S
        while (said := self._said()).count(STARTED) < len(self._nodes):
            if self._nodes[-1].poll() is not None or time.monotonic() > until:
                self.close()
                raise HarnessError(f"a Ray node doesn't start: {said[-500:]}")
            time.sleep(0.1)

    def _said(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")


def clean_environment() -> dict[str, str]:
    """This process's variables without those of a Ray that it may be connected to itself, for the cluster's processes.

    Without tokens, too: they would have to be handed to everybody, and the cluster lives for a minute on one machine.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, "RAY_AUTH_MODE": "disabled"}


@contextmanager
def local_cluster(*cpus: int) -> Iterator[LocalCluster]:
    """A ``LocalCluster`` for the time of the ``with`` block."""
    cluster = LocalCluster(cpus)
    try:
        yield cluster
    finally:
        cluster.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _name_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
