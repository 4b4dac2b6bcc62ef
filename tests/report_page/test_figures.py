from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import make_run, split

from evalkit.core.outcome import Outcome
from evalkit.core.record import Timings, TrialRecord
from evalkit.report.figures import largest, loss_curve, seed_ranges, success_curve, time_segments


def trials(folder: Path, task: str, success_steps: list[int | None]) -> list[TrialRecord]:
    made = make_run(folder / task, {(task, "demo_clean"): split(0, len(success_steps))})
    return [
        replace(found, success_step=step, outcome=Outcome.FAILURE if step is None else Outcome.SUCCESS)
        for found, step in zip(made.records().values(), success_steps, strict=True)
    ]


def height_at(path: str, x: float) -> float:
    """Height in percent of a step curve at x."""
    height = 0.0
    for place, y in re.findall(r"H([\d.]+)V([\d.]+)", path):
        if float(place) <= x:
            height = 100 - float(y)
    return height


def test_the_curve_is_the_mean_of_the_tasks_not_of_the_trials(tmp_path: Path) -> None:
    # click_bell: 400 steps, solved at 100 and 400 of 2 trials; stack_blocks_three: 1200 steps, one of four, at 601.
    records = trials(tmp_path, "click_bell", [100, 400]) + trials(
        tmp_path, "stack_blocks_three", [601, None, None, None]
    )
    path = success_curve(records)
    assert path
    assert path.startswith("M0 100")
    assert path.endswith("H100")
    assert [height_at(path, x) for x in (24.9, 25, 50, 51, 99.9, 100)] == [0, 25, 25, 37.5, 37.5, 62.5]


def test_no_scored_trials_have_no_curve(tmp_path: Path) -> None:
    assert success_curve([]) is None
    (record,) = trials(tmp_path, "click_bell", [None])
    assert success_curve([replace(record, outcome=Outcome.SIM_ERROR)]) is None
    assert success_curve([record]) == "M0 100H100"


def test_time_segments_cover_the_wall_time(tmp_path: Path) -> None:
    records = trials(tmp_path, "click_bell", [None, None])
    times = Timings(setup_s=1.0, physics_s=5.0, render_s=2.0, wall_s=10.0)
    segments = time_segments([replace(record, timings=times) for record in records])
    assert [(part.phase, part.start, part.width) for part in segments] == [
        ("setup", 0, 10),
        ("physics", 10, 50),
        ("render", 60, 20),
        ("other", 80, 20),
    ]
    assert [(part.total_s, part.median_s) for part in segments] == [(2, 1), (10, 5), (4, 2), (4, 2)]
    assert time_segments([]) == ()


@pytest.mark.parametrize(
    ("seeds", "text"),
    [([], ""), ([7], "7"), ([100000, 100001, 100002, 100005, 100007, 100008], "100000-100002, 100005, 100007-100008")],
)
def test_seed_ranges(seeds: list[int], text: str) -> None:
    assert seed_ranges([*reversed(seeds), *seeds]) == text


def test_loss_curve() -> None:
    assert loss_curve([(0, 2.0), (50, 1.0), (100, 0.0)]) == "M0.00 0.00L50.00 50.00L100.00 100.00"
    assert loss_curve([(5, 1.0)]) is None
    assert loss_curve([(5, 1.0), (5, 0.5)]) is None


def test_the_longest_bar() -> None:
    assert largest({"a": [0, 3], "b": [2, 0]}) == 3
    assert largest({}) == largest({"a": [0, 0]}) == 1
