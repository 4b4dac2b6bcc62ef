"""vla-eval in an environment of its own: installed once, started as its documentation prescribes, timed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "0.8.0"
SIDE = Path(__file__).with_name("vla_eval_side.py")
START_LIMIT_S = 180.0


def default_cache() -> Path:
    """Where the peer's environment lies if nothing else is said; outside any checkout."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "evalkit-benchmarks"


def install(cache: Path) -> Path:
    """The peer's interpreter; installed at the first call.

    Raises:
        subprocess.CalledProcessError: pip can't install it.
    """
    folder = cache / f"vla-eval-{VERSION}-py{sys.version_info.major}{sys.version_info.minor}"
    python, mark = folder / "bin" / "python", folder / "INSTALLED"
    if not mark.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        # standard output belongs to the results
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", f"vla-eval=={VERSION}"], check=True, stdout=sys.stderr
        )
        mark.touch()
    return python


def packages(python: Path) -> Path:
    """Folder of the packages that an interpreter has."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip())


@dataclass(frozen=True, kw_only=True)
class PeerServer:
    """How to start one of the model servers of ``vla_eval_side.py``."""

    kind: str
    """``toy-server`` or ``house-server``."""
    arguments: Mapping[str, Any]
    """Of its constructor."""
    python: Path
    environment: Mapping[str, str]


@contextmanager
def serving(server: PeerServer, log: Path) -> Iterator[str]:
    """A model server for the time of the ``with`` block; gives its URL.

    Raises:
        RuntimeError: it doesn't start.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = [f"--args.{name}={value}" for name, value in server.arguments.items()]
    command = [str(server.python), str(SIDE), server.kind, "--address", f"127.0.0.1:{port}", *flags]
    with log.open("ab") as stream:
        process = subprocess.Popen(command, env=dict(server.environment), stdout=stream, stderr=stream)
        try:
            _await_health(f"http://127.0.0.1:{port}/health", process, log)
            yield f"ws://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _await_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"vla-eval's server ended with {process.returncode}: {log.read_text()[-1500:]}")
        try:
            with urllib.request.urlopen(url, timeout=2.0):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"vla-eval's server didn't start within {START_LIMIT_S:g} s: {log.read_text()[-1500:]}")


def run_shards(
    python: Path,
    environment: Mapping[str, str],
    benchmarks: Sequence[Mapping[str, Any]],
    url: str,
    shards: int,
    folder: Path,
) -> float:
    """All shards to their end. Returns the seconds from the first start to the last end.

    Raises:
        RuntimeError: a shard failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {"server": {"url": url, "timeout": 300}, "output_dir": str(folder), "benchmarks": list(benchmarks)}
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    command = [str(python), str(SIDE), "run", "-c", str(path), "--no-docker", "--eval-id", "benchmark"]
    started = time.perf_counter()
    processes = []
    for index in range(shards):
        sharding = ["--shard-id", str(index), "--num-shards", str(shards)]
        with (folder / f"shard-{index}.log").open("wb") as log:
            processes.append(subprocess.Popen([*command, *sharding], env=dict(environment), stdout=log, stderr=log))
    codes = [process.wait() for process in processes]
    seconds = time.perf_counter() - started
    if any(codes):
        tail = (folder / f"shard-{next(i for i, code in enumerate(codes) if code)}.log").read_text()[-2000:]
        raise RuntimeError(f"vla-eval's shards ended with {codes}: {tail}")
    return seconds
