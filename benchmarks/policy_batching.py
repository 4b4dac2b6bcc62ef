"""What continuous batching gains for a large policy behind evalkit's policy server, and what keeping every bit costs.

A transformer with random weights (about 1 B parameters by default) serves N sessions, each a process that sends three
pictures and waits for its chunk. Ways of serving, each for some seconds:

    unbatched         one observation a pass
    free              as many rows as wait, at most ``--max-batch``
    padded            always as many rows as ``--slots`` says, empty ones filled: the same kernels at every pass
    row by row        matrix products a row at a time, in one launch: a row meets the same tiles wherever it lies
    graph             a padded pass recorded once as a CUDA graph (CUDA only)

The rule of evalkit's contract is that batching may never change an action. For each way, every answer is compared with
what the same policy gives for the same observation alone; the table says how many differ, and by how much at most.
Which ways keep every bit depends on the device's kernels, and is measured here, not assumed.

    python benchmarks/policy_batching.py --out results/policy_batching                    # one GPU, a few minutes
    python benchmarks/policy_batching.py --width 64 --layers 2 --heads 4 --sessions 4 --seconds 3 --out /tmp/batching
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SIDES = Path(__file__).resolve().parent / "sides"
sys.path[:0] = [path for path in (str(SIDES), str(SIDES.parent.parent)) if path not in sys.path]

from accounts import machine, markdown  # noqa: E402
from batch_client import LOOKS, client, episode, observation  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way of serving."""

    name: str
    slots: int | None
    max_batch: int
    row_by_row: bool = False
    graph: bool = False


def ways_of(max_batch: int, slots: tuple[int, ...], cuda: bool) -> list[Way]:
    """All ways, the unbatched one first."""
    ways = [
        Way(name="unbatched", slots=None, max_batch=1),
        Way(name=f"free, at most {max_batch}", slots=None, max_batch=max_batch),
        Way(name=f"free, at most {max_batch}, row by row", slots=None, max_batch=max_batch, row_by_row=True),
    ]
    for count in slots:
        ways.append(Way(name=f"padded to {count}", slots=count, max_batch=count))
        if cuda:
            ways.append(Way(name=f"padded to {count}, graph", slots=count, max_batch=count, graph=True))
        ways.append(
            Way(name=f"padded to {count}, row by row", slots=count, max_batch=count, row_by_row=True, graph=cuda)
        )
    return ways


def measure(name: str, make_policy: Callable[[], Any], sessions: int, seconds: float) -> dict[str, Any]:
    """One way of serving.

    Raises:
        RuntimeError: a session's policy failed.
    """
    from evalkit.pool.policy_desk import PolicyDesk

    desk = PolicyDesk(make_policy)
    assert desk.address is not None, "the sessions reach the policy through Unix sockets"
    alone: dict[tuple[int, int], Any] = {}
    for session in range(sessions):
        desk.ask("reset", episode(session)).result()
        for look in range(LOOKS):
            answer = desk.ask("act", observation(session, look)).result()
            if answer.error is not None:
                raise RuntimeError(f"{name}: {answer.error.message}")
            alone[session, look] = answer.chunk
    lone_s = _lone_s(desk)
    desk.batch_sizes.clear()
    reset_peak()
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(sessions)
    pipes, processes = [], []
    for session in range(sessions):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (session, desk.policy.spec, desk.address, begin, seconds, theirs)
        process = context.Process(target=client, args=arguments, daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    found = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    desk.policy.close()
    if problems := [problem for problem, _, _ in found if problem]:
        raise RuntimeError(f"{name}: {problems[0]}")
    compared = compare(alone, [answers for _, answers, _ in found])
    times = sorted(seconds for _, _, times in found for seconds in times)
    sizes = {size: desk.batch_sizes[size] for size in sorted(desk.batch_sizes)}
    return {
        "name": name,
        "decisions": len(times),
        "decisions_per_s": len(times) / seconds,
        "median_ms": 1000 * times[len(times) // 2],
        "p95_ms": 1000 * times[int(len(times) * 0.95)],
        "lone_ms": 1000 * lone_s,
        "batch_sizes": sizes,
        "mean_batch": len(times) / max(1, sum(sizes.values())),
        "peak_memory_mib": peak_mib(),
        **compared,
    }


def compare(alone: dict[tuple[int, int], Any], answers: list[list[list[Any]]]) -> dict[str, Any]:
    """Answers that differ from what the policy gives alone.

    Args:
        alone: (session, look) -> chunk.
        answers: for each session and look, the different chunks with their numbers.
    """
    total, wrong, most = 0, 0, 0.0
    for session, looks in enumerate(answers):
        for look, chunks in enumerate(looks):
            for number, chunk in chunks:
                total += number
                if not np.array_equal(chunk, alone[session, look]):
                    wrong += number
                    most = max(most, float(np.abs(chunk - alone[session, look]).max()))
    return {"compared": total, "differing": wrong, "largest_difference": most}


def _lone_s(desk: Any, calls: int = 5) -> float:
    looks = [observation(0, look % LOOKS) for look in range(calls)]
    times: list[float] = []
    for look in looks:
        started = time.perf_counter()
        desk.ask("act", look).result()
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def reset_peak() -> None:
    """Begin to watch the device's memory."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_mib() -> float:
    """Most memory of the device since ``reset_peak``; without one, of this process since its start."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def as_markdown(result: dict[str, Any]) -> str:
    """The table."""
    ways = result["ways"]
    rows = [
        (
            way["name"],
            way["decisions_per_s"],
            way["decisions_per_s"] / ways[0]["decisions_per_s"],
            way["lone_ms"],
            way["median_ms"],
            way["p95_ms"],
            way["mean_batch"],
            way["peak_memory_mib"],
            f"{way['differing']} of {way['compared']}",
            f"{way['largest_difference']:.2g}",
        )
        for way in ways
    ]
    header = ["way", "decisions/s", "x unbatched", "alone, ms", "median, ms", "95 %, ms", "mean batch", "peak, MiB"]
    header += ["differ from alone", "by at most"]
    lines = [f"# Batching a large policy, {result['made_at']}", ""]
    lines += [f"{key}: {value}" for key, value in {**result["machine"], **result["setting"]}.items()]
    lines += ["", markdown(header, rows), ""]
    kept = [way for way in ways[1:] if way["differing"] == 0]
    if kept:
        fastest = max(kept, key=lambda way: way["decisions_per_s"])
        gain = fastest["decisions_per_s"] / ways[0]["decisions_per_s"]
        lines += [f"Fastest of the batched ways that kept every bit: {fastest['name']}, x {gain:.2f}", ""]
    else:
        lines += ["No batched way kept every bit.", ""]
    lines += [f"- {way['name']}: batches by size {json.dumps(way['batch_sizes'])}" for way in ways]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure and write. Exit code 1 if no way of batching kept every bit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for policy_batching.json and .md")
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--chunk-steps", type=int, default=32)
    parser.add_argument("--euler-steps", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--max-batch", type=int, default=8, help="most rows of a free batch: bounds the memory")
    parser.add_argument("--slots", default="4,8", help="rows of padded passes, comma-separated")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each way")
    parser.add_argument("--device", help="cuda or cpu; cuda if there is one")
    options = parser.parse_args()
    import torch
    from big_policy import BigPolicy, Size, make_network

    from evalkit.pool.within_memory import within_memory

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    kind = torch.bfloat16 if device.startswith("cuda") else torch.float32
    size = Size(
        width=options.width,
        layers=options.layers,
        heads=options.heads,
        chunk_steps=options.chunk_steps,
        euler_steps=options.euler_steps,
    )
    started = time.monotonic()
    network = make_network(size, device, kind)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    options.out.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            **machine(("numpy", "torch")),
            "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        },
        "setting": {
            "parameters": parameters,
            "dtype": str(kind),
            "sessions": options.sessions,
            "max_batch": options.max_batch,
            "seconds": options.seconds,
        },
        "ways": [],
    }

    def make(way: Way) -> Any:
        policy = BigPolicy(network, way.slots, row_by_row=way.row_by_row, graph=way.graph)
        return within_memory(policy, way.max_batch)

    for way in ways_of(options.max_batch, tuple(map(int, options.slots.split(","))), device.startswith("cuda")):
        found = measure(way.name, partial(make, way), options.sessions, options.seconds)
        result["ways"].append(found)
        (options.out / "policy_batching.json").write_text(json.dumps(result, indent=1) + "\n")
        (options.out / "policy_batching.md").write_text(as_markdown(result))
        print(f"{way.name}: {found['decisions_per_s']:.1f} decisions/s", file=sys.stderr, flush=True)
    print(as_markdown(result))
    print(f"{time.monotonic() - started:.0f} s in all", file=sys.stderr)
    return 0 if any(way["differing"] == 0 for way in result["ways"][1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
