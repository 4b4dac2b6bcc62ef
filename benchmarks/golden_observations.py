"""Makes the golden observations of ``evalkit policy check`` out of demonstrations.

evalkit collect --tasks click_bell,grab_roller --episodes 1
python benchmarks/golden_observations.py data/*/demo_clean/data/episode0.hdf5 --out policies/golden
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from evalkit.data.episode_file import read_episode

MOMENTS, STEPS, DECIMALS = 4, 16, 6


def write(path: Path, out: Path) -> Path:
    """A few moments of one episode. Returns the folder."""
    episode = read_episode(path)
    origin = episode.provenance
    assert origin is not None
    instructions = path.parents[1] / "instructions" / f"{path.stem}.json"
    folder = out / origin.task
    folder.mkdir(parents=True, exist_ok=True)
    moments = []
    for frame in np.linspace(0, episode.frames - STEPS - 1, MOMENTS).astype(int).tolist():
        pictures = {name: f"{frame:03d}_{name}.jpg" for name in episode.images}
        for name, file in pictures.items():
            (folder / file).write_bytes(episode.images[name][frame])
        following = slice(frame + 1, frame + 1 + STEPS)
        moments.append(
            {
                "frame": frame,
                "state": episode.state[frame].round(DECIMALS).tolist(),
                "endpose": episode.endpose[frame].round(DECIMALS).tolist(),
                "then_state": episode.state[following].round(DECIMALS).tolist(),
                "then_endpose": episode.endpose[following].round(DECIMALS).tolist(),
                "pictures": pictures,
            }
        )
    values = {
        "task": origin.task,
        "config": origin.config,
        "seed": origin.seed,
        "assets": f"{origin.assets} {origin.assets_digest}",
        "instruction": json.loads(instructions.read_text())["seen"][0],
        "moments": moments,
    }
    (folder / "observations.json").write_text(json.dumps(values) + "\n")
    return folder


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("episodes", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for path in arguments.episodes:
        print(write(path, arguments.out))


if __name__ == "__main__":
    main()
