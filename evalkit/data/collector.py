"""Runs seeds of several collections on a few workers, each a thread that owns a simulator in a process of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from evalkit.core.errors import SimulatorError
from evalkit.data.collect import Collection, SeedRecord
from evalkit.data.episode_file import Episode

PROCESS_FAULTS = ("crash", "hang")
"""Errors that may be the machine's fault: the seed is tried again before it is rejected."""
ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A demonstration and what belongs to it."""

    episode: Episode
    sentences: Mapping[str, Sequence[str]]
    """``"seen"`` and ``"unseen"`` → sentences."""
    scene_info: Mapping[str, Any]
    """Entry for ``scene_info.json``."""


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Why the seed gives no demonstration."""

    reason: str


RunSeed = Callable[[int, Collection, int], Accepted | Rejected]
"""(worker number, collection, seed) → result. One call at a time per worker number. May raise SimulatorError."""


def collect(
    collections: Sequence[Collection],
    run_seed: RunSeed,
    *,
    workers: int,
    on_seed: Callable[[Collection], None] = lambda _collection: None,
    interrupt: Callable[[], None] = lambda: None,
) -> None:
    """Try seeds until every collection is complete or has stopped. Collections are closed, whatever happens.

    Args:
        collections: worked on in this order; the next one starts when the seeds in flight may complete the one before.
        run_seed: tries one seed.
        workers: seeds in flight at most.
        on_seed: called in this thread after each seed, with its collection.
        interrupt: called when an exception or Ctrl-C ends the work early; must make running ``run_seed`` calls return
            or raise soon.
    """
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for worker in range(workers):
        free.put(worker)
    ending = threading.Event()
    running: dict[Future[tuple[SeedRecord, str]], Collection] = {}
    try:
        with ThreadPoolExecutor(workers, thread_name_prefix="collect") as executor:
            try:
                while True:
                    while len(running) < workers and (job := _next_job(collections)):
                        running[executor.submit(_try_seed, free, ending, run_seed, *job)] = job[0]
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        collection = running.pop(future)
                        record, error = future.result()
                        if error:
                            collection.record_error(record, error)
                        else:
                            collection.record(record)
                        on_seed(collection)
            except BaseException:
                ending.set()
                interrupt()
                raise
    finally:
        for collection in collections:
            collection.close()


def _next_job(collections: Sequence[Collection]) -> tuple[Collection, int] | None:
    for collection in collections:
        if (seed := collection.next_seed()) is not None:
            return collection, seed
    return None


def _try_seed(
    free: queue.SimpleQueue[int], ending: threading.Event, run_seed: RunSeed, collection: Collection, seed: int
) -> tuple[SeedRecord, str]:
    """The seed's record, and what tells its error from others if the simulator raised."""
    worker = free.get()
    attempt = 1
    try:
        while True:
            try:
                result = run_seed(worker, collection, seed)
                break
            except SimulatorError as error:
                if ending.is_set():
                    raise
                is_process_fault = error.kind in PROCESS_FAULTS
                if is_process_fault and attempt < ATTEMPTS:
                    attempt += 1
                    continue
                lines = str(error).splitlines() or [""]
                rejection = SeedRecord(seed=seed, accepted=False, reason=f"{error.kind}: {lines[0]}")
                # Messages of crashes name log files, which differ between workers.
                return rejection, error.kind if is_process_fault else rejection.reason
        if isinstance(result, Rejected):
            return SeedRecord(seed=seed, accepted=False, reason=result.reason), ""
        return collection.save(seed, result.episode, result.sentences, result.scene_info), ""
    finally:
        free.put(worker)
