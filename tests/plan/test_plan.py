import subprocess
import sys
from dataclasses import replace

import pytest

from evalkit.core.errors import UserError
from evalkit.plan.plan import PlanSettings, make_plan
from evalkit.plan.seeds import SeedEntry, SeedList
from evalkit.protocol.config import load_config

SETTINGS = PlanSettings(backend="b", policy="p", action_type="qpos", execute_steps=8, trials_per_task=2, repeats=2)
CONFIGS = [load_config("demo_clean"), load_config("demo_randomized")]
TASKS = ("click_bell", "stack_blocks_two")


def seed_list(task, config, seeds):
    entries = tuple(
        SeedEntry(
            seed=s, accepted=True, reason="ok", config_digest="c", instruction=f"{task} {s}", instruction_split="seen"
        )
        for s in seeds
    )
    return SeedList(task=task, config=config, entries=entries)


SEEDS = {(t, c.name): seed_list(t, c.name, [100000, 100003, 100004]) for t in TASKS for c in CONFIGS}


def test_canonical_order_and_counts():
    plan = make_plan(SETTINGS, TASKS, CONFIGS, SEEDS)
    order = [(s.task, s.config, s.seed, s.repeat) for s in plan]
    assert order == [
        (task, config, seed, repeat)
        for task in TASKS
        for config in ("demo_clean", "demo_randomized")
        for seed in (100000, 100003)
        for repeat in (0, 1)
    ]
    assert len({s.key for s in plan}) == len(plan)
    assert {s.horizon_steps for s in plan if s.task == "stack_blocks_two"} == {800}
    assert plan[0].instruction == "click_bell 100000"


def test_a_changed_setting_changes_every_key():
    keys = {s.key for s in make_plan(SETTINGS, TASKS, CONFIGS, SEEDS)}
    for change in ({"backend": "x"}, {"policy": "x"}, {"execute_steps": 7}):
        assert keys.isdisjoint(s.key for s in make_plan(replace(SETTINGS, **change), TASKS, CONFIGS, SEEDS))


def test_a_short_list_is_refused():
    short = {**SEEDS, ("click_bell", "demo_clean"): seed_list("click_bell", "demo_clean", [100000])}
    with pytest.raises(UserError, match="click_bell demo_clean has 1 accepted seeds, 2 are needed"):
        make_plan(SETTINGS, TASKS, CONFIGS, short)


def test_importing_plan_and_store_is_light():
    code = (
        "import sys, evalkit.plan.plan, evalkit.plan.seed_files, evalkit.store.run\n"
        "print([m for m in ('sapien', 'ray', 'torch') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
