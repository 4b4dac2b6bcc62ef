"""The small world through every harness: a bare loop, vla-eval, evalkit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import peer
import toy
from accounts import Rate, rate, worker_time

SIDES = Path(__file__).parent
Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ToySetting:
    """A world, and how many actions the policy decides at once."""

    name: str
    step_ms: float
    images: int
    chunk_steps: int
    tasks: int
    episodes: int
    horizon: int


@dataclass(frozen=True, kw_only=True)
class PeerSetting:
    """A way to run vla-eval."""

    shards: int
    max_batch_size: int = 1
    max_wait_time: float = 0.01
    """Its default."""
    raw: bool = False
    """Pictures without PNG: a function of its code that no option of it reaches."""

    @property
    def name(self) -> str:
        """As the tables call it."""
        batch = f", batch {self.max_batch_size}, wait {self.max_wait_time:g} s" if self.max_batch_size > 1 else ""
        raw = " with raw pictures" if self.raw else ""
        return f"vla-eval{raw}, {self.shards} shard{'s' * (self.shards > 1)}{batch}"


def peer_settings(quick: bool, images: int) -> list[PeerSetting]:
    """What is tried: its defaults, and what could serve it better."""
    plain = [PeerSetting(shards=shards) for shards in ((2,) if quick else (1, 2, 4))]
    if quick:
        return plain
    batched = [
        PeerSetting(shards=4, max_batch_size=4),
        PeerSetting(shards=2, max_batch_size=2, max_wait_time=0.0005),
        PeerSetting(shards=4, max_batch_size=4, max_wait_time=0.0005),
    ]
    raw = [PeerSetting(shards=shards, raw=True) for shards in (2, 4)] if images else []
    return [*plain, *batched, *raw]


def measure(
    setting: ToySetting, workers: tuple[int, ...], peers: list[PeerSetting], python: Path | None, say: Report
) -> tuple[list[Rate], dict[str, Any]]:
    """All routes through one setting, one after another; and where evalkit's workers spent their time.

    Args:
        setting: the world.
        workers: evalkit's counts.
        peers: vla-eval's settings.
        python: vla-eval's interpreter; None leaves it out.
        say: told about each route's rate.
    """
    rates: list[Rate] = []
    accounts: dict[str, Any] = {}

    def note(one: Rate) -> None:
        rates.append(one)
        say(f"  {one.route}: {one.steps_per_s:,.0f} steps/s ({one.steps_per_s_whole:,.0f} with start and end)")

    note(bare(setting))
    for count in workers:
        one, account = through_evalkit(setting, count)
        accounts[one.route] = account
        note(one)
    if python is not None:
        for peer_setting in peers:
            note(through_peer(setting, peer_setting, python))
    return rates, accounts


def bare(setting: ToySetting) -> Rate:
    """World and policy called in a loop, in this process."""
    with _stamps() as folder:
        world = toy.ToyWorld(setting.horizon, setting.step_ms, setting.images, folder)
        started = time.perf_counter()
        for number in range(setting.tasks):
            for episode in range(setting.episodes):
                world.reset(f"toy_{number}", 1000 * number + episode)
                done = False
                while not done:
                    for action in toy.decide(world.state(), world.pictures(), setting.chunk_steps):
                        done = world.step(action)
                        if done:
                            break
        return rate("bare loop", _read(folder), time.perf_counter() - started)


def through_evalkit(setting: ToySetting, workers: int) -> tuple[Rate, dict[str, Any]]:
    """The pool, as a command of its own."""
    values = {key: value for key, value in asdict(setting).items() if key != "name"}
    with _stamps() as folder, tempfile.TemporaryDirectory() as runs:
        run_folder = Path(runs) / "run"
        job = {**values, "workers": workers, "stamps": str(folder), "folder": str(run_folder)}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SIDES), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, str(SIDES / "evalkit_side.py"), json.dumps(job)]
        began, started = time.time(), time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        wall_s = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"evalkit ended with {done.returncode}: {done.stderr[-2000:]}")
        records = [json.loads(line) for line in (run_folder / "trials.jsonl").read_text().splitlines()]
        time_of = worker_time(records, began, began + wall_s)
        account = {
            "overhead_per_trial_ms": time_of.overhead_per_trial_ms,
            "of_it_waiting_for_the_driver_ms": 1000 * time_of.between_s / time_of.trials,
            "road_per_decision_ms": 1000 * time_of.phases["queue_s"] / sum(r["policy_calls"] for r in records),
            "decisions": sum(record["policy_calls"] for record in records),
        }
        one = rate(f"evalkit, {workers} worker{'s' * (workers > 1)}", _read(folder), wall_s)
    return one, account


def through_peer(setting: ToySetting, how: PeerSetting, python: Path) -> Rate:
    """vla-eval: its server, and its shards side by side; the server's start isn't counted."""
    environment = {**os.environ, "PYTHONPATH": str(SIDES)}
    if how.raw:
        environment["VLA_EVAL_RAW_PICTURES"] = "1"
    arguments = {
        "chunk_size": setting.chunk_steps,
        "max_batch_size": how.max_batch_size,
        "max_wait_time": how.max_wait_time,
    }
    server = peer.PeerServer(kind="toy-server", arguments=arguments, python=python, environment=environment)
    with _stamps() as folder, tempfile.TemporaryDirectory() as scratch:
        benchmark = {
            "benchmark": "vla_eval_side:ToyBenchmark",
            "episodes_per_task": setting.episodes,
            "params": {
                "tasks": setting.tasks,
                "horizon": setting.horizon,
                "step_ms": setting.step_ms,
                "images": setting.images,
                "stamps": str(folder),
            },
        }
        with peer.serving(server, Path(scratch) / "server.log") as url:
            wall_s = peer.run_shards(python, environment, [benchmark], url, how.shards, Path(scratch) / "out")
        return rate(how.name, _read(folder), wall_s)


class _stamps:  # noqa: N801  (reads as the function it stands for)
    """A folder for the stamps of one route."""

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.name)

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()


def _read(folder: Path) -> list[dict[str, Any]]:
    return list(_lines(folder))


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())
