"""The environment of a simulator's process."""

from __future__ import annotations

import os
from pathlib import Path

from evalkit.sim.robotwin.layout import RenderSettings


def worker_environment(python: Path, render: RenderSettings) -> dict[str, str]:
    """Environment of a worker: one thread for linear algebra, and the GPU visible where pictures need it.

    More BLAS threads would fight the other workers and make the last bits of results depend on the machine. Programs
    that its packages call (cuRobo: ninja) come from the interpreter's own environment, as if it were activated.
    """
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([str(python.parent), environment.get("PATH", os.defpath)])
    environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    environment.update(render.environment)
    environment.pop("PYTHONPATH", None)
    environment.pop("PYTHONHOME", None)
    if extra := os.environ.get("EVALKIT_ROBOTWIN_PYTHONPATH"):
        environment["PYTHONPATH"] = extra
    # Ray hides every GPU from actors that reserve none; rendering needs it all the same.
    if render.device == "cuda" and environment.get("CUDA_VISIBLE_DEVICES") == "":
        del environment["CUDA_VISIBLE_DEVICES"]
    return environment
