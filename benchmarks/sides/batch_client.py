"""The sessions of ``policy_batching.py``: processes that ask a policy server as fast as it answers."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from evalkit.core.rng import stream
from evalkit.policy.contract import EpisodeInfo, Observation, PolicySpec
from evalkit.pool.local_caller import LocalCaller
from evalkit.pool.local_road import LocalAddress

CAMERAS = ("head_camera", "left_camera", "right_camera")
LOOKS = 4
"""Different observations of each session."""


def observation(session: int, look: int) -> Observation:
    """What a session sends; the same at every call."""
    random = stream(session, "batching", look)
    images = {name: random.integers(0, 256, (240, 320, 3), dtype=np.uint8) for name in CAMERAS}
    state = random.uniform(-1.0, 1.0, 14)
    return Observation(session=str(session), step=look, instruction="", state=state, images=images)


def episode(session: int) -> EpisodeInfo:
    """The start of a session."""
    return EpisodeInfo(session=str(session), instruction="", policy_seed=session, horizon_steps=100)


def client(session: int, spec: PolicySpec, address: LocalAddress, begin: Any, seconds: float, pipe: Connection) -> None:
    """A session in its own process: asks as fast as it is answered. Sends its answers and the times they took."""
    caller = LocalCaller(spec, address)
    caller.ask("reset", episode(session))
    looks = [observation(session, look) for look in range(LOOKS)]
    answers: list[dict[bytes, Any]] = [{} for _ in looks]
    times: list[float] = []
    begin.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        look = len(times) % LOOKS
        asked = time.perf_counter()
        decision = caller.ask("act", looks[look])
        times.append(time.perf_counter() - asked)
        if decision.error is not None:
            pipe.send((decision.error.message, [], []))
            return
        seen = answers[look].setdefault(decision.chunk.tobytes(), [0, decision.chunk])
        seen[0] += 1
    pipe.send(("", [list(found.values()) for found in answers], times))
    caller.close()
