from __future__ import annotations

import yaml

from evalkit.core.locations import bundled
from evalkit.core.tasks import STEP_LIMITS
from evalkit.sim.contract import Scene


def scene(task, config="demo_clean", seed=100000, horizon_steps=None, evaluation=True):
    settings = yaml.safe_load((bundled("task_configs") / f"{config}.yml").read_text())
    limit = STEP_LIMITS[task] if horizon_steps is None else horizon_steps
    return Scene(task=task, config=config, settings=settings, seed=seed, horizon_steps=limit, evaluation=evaluation)
