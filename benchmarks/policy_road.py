"""What it costs to ask a policy server: by the short way on one machine, and through Ray. Alternately, in one run.

    python benchmarks/policy_road.py --decisions 300

The policy answers at once; the observation holds three 320x240 pictures, or none. Milliseconds a decision, medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

SIDES = Path(__file__).resolve().parent / "sides"
sys.path[:0] = [path for path in (str(SIDES), str(SIDES.parent.parent)) if path not in sys.path]

from accounts import markdown  # noqa: E402

from evalkit.policy.contract import CameraSpec, EpisodeInfo, Observation, PolicySpec  # noqa: E402

CAMERAS = ("head_camera", "left_camera", "right_camera")
SPEC = PolicySpec(
    name="still",
    cameras=tuple(CameraSpec(name=name) for name in CAMERAS),  # type: ignore[arg-type]
    action_type="qpos",
    chunk_steps=16,
    execute_steps=16,
    needs_instruction=False,
    stateful=False,
)


class Still:
    """Holds the robot where it is."""

    spec = SPEC

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> np.ndarray:
        """The present state, sixteen times."""
        return np.repeat(observation.state[None], 16, axis=0)

    def close(self) -> None:
        """Nothing to release."""


def measure(decisions: int) -> list[tuple[str, float, float, float]]:
    """(what, short way, through Ray, ratio) for pictures and for none; ms a decision."""
    from evalkit.pool.policy_server import PolicyRoad, PolicyServer, RemoteDecider
    from evalkit.pool.ray_session import ray, ray_session

    rows = []
    with ray_session(1):
        server = ray.remote(num_cpus=1, max_concurrency=100)(PolicyServer).remote(Still)
        road = PolicyRoad(server=server, spec=SPEC, generation=0, limit_s=60.0)
        near, far = RemoteDecider(road), RemoteDecider(road)
        far._look = lambda: None  # type: ignore[method-assign]  # as if the server were on another machine
        for what, cameras in (("three pictures", CAMERAS), ("no pictures", ())):
            random = np.random.default_rng(0)
            images = {name: random.integers(0, 256, (240, 320, 3), dtype=np.uint8) for name in cameras}
            look = Observation(session="a", step=0, instruction="", state=np.zeros(14), images=images)
            times: dict[bool, list[float]] = {True: [], False: []}
            for number in range(2 * decisions + 20):
                decider = near if number % 2 else far
                started = time.perf_counter()
                answer = decider.decide(look)
                seconds = time.perf_counter() - started
                assert answer.chunk is not None
                if number >= 20:  # the first ones start things
                    times[decider.is_local].append(seconds)
            short, long = (1000 * statistics.median(times[local]) for local in (True, False))
            rows.append((what, short, long, long / short))
        near.close()
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=300, help="of each way")
    options = parser.parse_args()
    header = ("an observation with", "short way, ms", "through Ray, ms", "ratio")
    print(markdown(header, measure(options.decisions)))


if __name__ == "__main__":
    main()
