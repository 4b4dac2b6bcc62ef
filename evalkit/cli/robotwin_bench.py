"""``evalkit robotwin bench``: what RoboTwin's parts cost on this machine, and what the whole protocol would."""

from __future__ import annotations

import itertools
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalkit.cli.robotwin_choice import RoboTwinChoice, RobotwinPython, RobotwinRoot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evalkit.cli.backends import Backend
    from evalkit.plan.rates import Bench, SimulatorRate
    from evalkit.protocol.config import TaskConfig
    from evalkit.sim.contract import Scene

CANDIDATES = 6
"""Scenes tried per task before it is given up."""
SAMPLE = ("click_bell", "beat_block_hammer", "place_shoe", "stack_blocks_two", "open_laptop", "put_bottles_dustbin")
"""Tasks measured unless told otherwise: short and long, one arm and two, with joints and without."""
CAMERAS = ("head_camera", "left_camera", "right_camera")
CHUNKS = (1, 8, 32)
TRIALS = 100


def bench_command(
    tasks: Annotated[
        str | None, typer.Option(help="Comma-separated, or all. A sample of six if left out.", show_default=False)
    ] = None,
    mode: Annotated[str, typer.Option(help="c2c, c2r or all: configurations to measure.")] = "all",
    cameras: Annotated[str, typer.Option(help="Cameras of one observation, comma-separated.")] = ",".join(CAMERAS),
    as_json: Annotated[bool, typer.Option("--json", help="Print the measurement as JSON.")] = False,
    backend: Annotated[str, typer.Option(help="robotwin; or fake, for testing the harness itself.")] = "robotwin",
    robotwin_root: RobotwinRoot = None,
    robotwin_python: RobotwinPython = None,
) -> None:
    """Measure set-up, expert, action and observation here, and predict the hours of the whole protocol.

    One simulator by itself, some seconds a task. What it finds is kept on this machine, for evalkit plan.

    Example: [bold]evalkit robotwin bench --robotwin-root ~/RoboTwin --robotwin-python conda:RoboTwin[/bold]
    """
    from rich.console import Console

    from evalkit.cli.backends import choose_tasks, load_backend
    from evalkit.core.errors import HarnessError
    from evalkit.plan.rates import write_bench
    from evalkit.protocol.config import load_config
    from evalkit.protocol.modes import configs_of

    configs = [load_config(name) for name in configs_of(mode)]
    names = _cameras(cameras)
    world = load_backend(backend, RoboTwinChoice(root=robotwin_root, python=robotwin_python))
    chosen = world.tasks if tasks == "all" else choose_tasks(tasks or ",".join(SAMPLE), world)
    errors = Console(stderr=True, highlight=False)
    with errors.status("starting a simulator ...") as status:
        bench, left_out = measure(world, chosen, configs, names, status.update)
    if not bench.rates:
        raise HarnessError(f"no expert succeeded in {CANDIDATES} scenes of {', '.join(left_out)}: run evalkit doctor")
    path = write_bench(bench)
    for name in left_out:
        errors.print(f"{name}: no expert succeeded in {CANDIDATES} scenes; not measured", markup=False)
    if as_json:
        print(json.dumps(bench.to_json(), indent=1))
    else:
        _show(bench, Console(highlight=False))
    errors.print(f"kept for evalkit plan: {path}", markup=False, soft_wrap=True)


def _cameras(names: str) -> tuple[str, ...]:
    from typing import get_args

    from evalkit.core.errors import UnknownNameError
    from evalkit.policy.contract import CameraName

    chosen = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in chosen:
        if name not in get_args(CameraName):
            raise UnknownNameError("camera", name, get_args(CameraName))
    return chosen


def measure(
    world: Backend, tasks: Sequence[str], configs: Sequence[TaskConfig], cameras: Sequence[str], say: Any
) -> tuple[Bench, list[str]]:
    """Measure tasks with one simulator.

    Args:
        world: the backend.
        tasks: tasks, one scene of each per configuration.
        configs: configurations.
        cameras: cameras of one observation.
        say: told in a few words what is measured.

    Returns:
        The measurement, and "task configuration" of those whose expert never succeeded.
    """
    from datetime import UTC, datetime

    from evalkit.episode.measure import measure_scene
    from evalkit.plan.rates import Bench, SimulatorRate

    fingerprint = world.fingerprint()
    started = time.perf_counter()
    sim = world.make_simulator("bench")
    rates: dict[tuple[str, str], SimulatorRate] = {}
    left_out, start_s, memory_bytes = [], 0.0, 0
    try:
        for task, config in itertools.product(tasks, configs):
            say(f"measuring {task} {config.name} ...")
            if not start_s:
                sim.reset(next(_scenes(task, config, fingerprint.physics_digest)))
                sim.observe(cameras)
                start_s = time.perf_counter() - started
            cost = measure_scene(sim, _scenes(task, config, fingerprint.physics_digest), cameras)
            memory_bytes = max(memory_bytes, _children_bytes())
            if cost is None:
                left_out.append(f"{task} {config.name}")
                continue
            rates[task, config.name] = SimulatorRate(
                setup_s=round(cost.setup_s, 4),
                action_s=round(cost.action_s, 5),
                observation_s=round(cost.observation_s, 5),
                cameras=len(cameras),
                expert_s=round(cost.expert_s, 4),
                expert_steps=cost.expert_steps,
                n=1,
            )
    finally:
        sim.close()
    bench = Bench(
        backend=fingerprint.digest,
        renderer=fingerprint.renderer,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=platform.node(),
        cpus=os.cpu_count() or 1,
        start_s=round(start_s, 2),
        memory_bytes=memory_bytes,
        rates=rates,
    )
    return bench, left_out


def _scenes(task: str, config: TaskConfig, physics_digest: str) -> Iterator[Scene]:
    """Scenes to try: those known to be accepted, else the first candidates."""
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.plan.seeds import first_candidate
    from evalkit.pool.seed_work import make_scene

    entries = SeedFiles(local_folder(), physics_digest).read(task, config.name)
    known = sorted(entry.seed for entry in entries if entry.accepted and entry.config_digest == config.digest)
    start = first_candidate(0)
    for seed in (known or range(start, start + CANDIDATES))[:CANDIDATES]:
        yield make_scene(task, config, seed)


def _children_bytes() -> int:
    import psutil

    children = psutil.Process().children(recursive=True)
    return sum(child.memory_full_info().uss for child in children if child.is_running())


def _show(bench: Bench, console: Console) -> None:
    from rich import box
    from rich.table import Table

    console.print(
        f"{bench.renderer}; {bench.cpus} CPUs; start to first picture {bench.start_s:.1f} s; "
        f"{bench.memory_bytes / 2**30:.2f} GB per simulator",
        markup=False,
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("task, ms", no_wrap=True)
    table.add_column("config", no_wrap=True)
    for name in ("set-up", "expert", "action", "observation"):
        table.add_column(name, justify="right")
    for (task, config), rate in bench.rates.items():
        times = (rate.setup_s, rate.expert_s or 0.0, rate.action_s, rate.observation_s)
        table.add_row(task, config.removeprefix("demo_"), *(f"{1000 * time_s:,.0f}" for time_s in times))
    console.print(table)
    console.print(_prediction(bench))


def _prediction(bench: Bench) -> Table:
    """Hours of one worker for 50 tasks x 100 trials x both configurations, by actions between two decisions."""
    from rich import box
    from rich.table import Table

    from evalkit.core.tasks import STEP_LIMITS, TASKS
    from evalkit.plan.cost import Portion, estimate

    configs = sorted({config for _, config in bench.rates})
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        title=f"the whole protocol: {len(TASKS)} tasks x {TRIALS} trials, {' and '.join(configs)}; hours of one worker",
        title_justify="left",
        caption="shortest: every trial as long as the expert's demonstration. longest: to its horizon. The policy's "
        "own time comes on top. Expert checks: once, for one accepted scene per trial at least. N workers divide this "
        "by N as far as cores and, for pictures, the GPU allow.",
        caption_justify="left",
    )
    table.add_column("observation every", no_wrap=True)
    for name in ("shortest", "longest", "of it pictures", "expert checks, once"):
        table.add_column(name, justify="right")
    portions = [
        Portion(task=task, config=config, trials=TRIALS, horizon_steps=STEP_LIMITS[task], candidates=TRIALS)
        for task in TASKS
        for config in configs
    ]
    for chunk in CHUNKS:
        cost = estimate(portions, bench.rates, None, execute_steps=chunk)
        if cost is not None and cost.low is not None:
            low, high = cost.low, cost.high
            table.add_row(
                f"{chunk} action{'s' if chunk > 1 else ''}",
                _hours(low.total_s - low.expert_s),
                _hours(high.total_s - high.expert_s),
                f"{100 * high.pictures_s / (high.total_s - high.expert_s):.0f} %",
                _hours(low.expert_s),
            )
    return table


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"
