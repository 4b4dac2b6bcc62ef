"""Several checkpoints on the same scenes: differences to the best, corrected for having looked at all."""

import random

import numpy as np
import pytest
from synthetic import make_run

from evalkit.aggregate import sweep
from evalkit.aggregate.compare import compare
from evalkit.aggregate.pairs import holm
from evalkit.aggregate.scenes import scenes_in_turn
from evalkit.aggregate.sides import run_side
from evalkit.aggregate.sweep import chosen_elsewhere, score_sweep, unique_names
from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.report.sweep import remarks
from evalkit.report.sweep_page import by_step, series, ticks
from evalkit.store.info import PolicyInfo

CELLS = [(task, config) for task in ("click_bell", "place_shoe") for config in ("demo_clean", "demo_randomized")]


def outcomes(draw, cells=CELLS, trials=10):
    return {cell: [Outcome.SUCCESS if draw() else Outcome.FAILURE for _ in range(trials)] for cell in cells}


def sweep_of(folder, *found):
    runs = []
    for number, of_run in enumerate(found, start=1):
        step = number * 1000
        policy = {"digest": f"{number:064d}", "checkpoint_digest": f"{number:064d}", "step": step}
        policy["checkpoint"] = f"runs/mine/step_{step}"
        runs.append(make_run(folder / f"run{number}", of_run, policy=policy))
    return runs


def drawn(seed, rate, **options):
    rng = random.Random(seed)
    return outcomes(lambda: rng.random() < rate, **options)


def test_differences_are_those_of_evalkit_compare(tmp_path):
    runs = sweep_of(tmp_path, drawn(1, 0.3), drawn(2, 0.8), drawn(3, 0.7))
    scores = score_sweep(runs)
    assert scores.by == "mean"
    assert [entry.name for entry in scores.entries] == ["step_1000", "step_2000", "step_3000"]
    assert scores.best is scores.entries[1]
    assert scores.pairs == 3
    sides = [run_side(run, str(number)) for number, run in enumerate(runs)]
    pairs = [compare(sides[a], sides[b]).average for a, b in ((0, 1), (0, 2), (1, 2))]
    adjusted = holm([pair.test.p for pair in pairs])
    first, third = scores.entries[0].against, scores.entries[2].against
    assert first.gap == pairs[0]
    assert first.p == adjusted[0]
    assert third.p == adjusted[2]
    assert third.gap.value == pytest.approx(-pairs[2].value)
    assert (third.gap.low, third.gap.high) == pytest.approx((-pairs[2].high, -pairs[2].low))
    for against in (first, third):
        assert against.gap.n_shared == 40
        assert against.joint_low < against.gap.low < against.gap.value < against.gap.high < against.joint_high
    assert first.told_apart


def test_of_equals_the_first_is_best_and_none_is_told_apart(tmp_path):
    same = drawn(1, 0.5)
    scores = score_sweep(sweep_of(tmp_path, same, same, same))
    assert [entry.is_best for entry in scores.entries] == [True, False, False]
    assert {entry.against.p for entry in scores.entries[1:]} == {1.0}
    assert scores.chosen_elsewhere == pytest.approx(scores.best.value.value)


def test_choosing_among_equals_flatters_and_scoring_elsewhere_doesnt(tmp_path, monkeypatch):
    """Twelve policies that all succeed half of the time: the best looks better than half, the choice isn't."""
    rng = np.random.default_rng(5)
    best, honest = [], []
    for _ in range(60):
        tables = [{(config, task): dict(enumerate(rng.random(20) < 0.5)) for task, config in CELLS} for _ in range(12)]
        monkeypatch.setattr(sweep, "_outcomes", lambda side: side)
        best.append(max(np.mean([list(scenes.values()) for scenes in table.values()]) for table in tables))
        honest.append(chosen_elsewhere(tables))
    assert np.mean(best) > 0.57
    assert abs(np.mean(honest) - 0.5) < 0.02


def test_no_difference_is_found_where_there_is_none_more_often_than_promised(tmp_path, monkeypatch):
    """The best is picked by the data; the adjusted p-values must allow for that."""
    wrong = 0
    for seed in range(6):
        runs = sweep_of(
            tmp_path / str(seed), *(drawn(1000 * seed + n, 0.5, cells=CELLS[:1], trials=40) for n in range(6))
        )
        scores = score_sweep(runs)
        wrong += any(entry.against and entry.against.told_apart for entry in scores.entries)
    assert wrong <= 1  # 5 % promised


def test_a_run_with_missing_trials_is_shown_but_not_compared(tmp_path):
    unfinished = drawn(2, 0.9)
    unfinished["click_bell", "demo_clean"][3:] = [None] * 7
    scores = score_sweep(sweep_of(tmp_path, drawn(1, 0.5), unfinished, drawn(3, 0.2)))
    assert scores.best is scores.entries[0]
    assert [entry.name for entry in scores.incomplete] == ["step_2000"]
    assert scores.entries[1].against is None
    assert scores.pairs == 1
    assert remarks(scores)[0].startswith("Trials are missing, so these aren't compared: step_2000. ")


def test_one_configuration_and_one_checkpoint(tmp_path):
    scores = score_sweep(sweep_of(tmp_path, drawn(1, 0.5, cells=CELLS[::2])))
    assert (scores.by, scores.pairs, scores.chosen_elsewhere) == ("demo_clean", 0, None)
    assert scores.best is scores.entries[0]
    assert remarks(scores) == []
    with pytest.raises(UserError, match="without runs"):
        score_sweep([])


def test_scenes_come_in_turn_for_all(tmp_path):
    plans = [run.plan for run in sweep_of(tmp_path, drawn(1, 0.5), drawn(2, 0.5), drawn(3, 0.5))]
    order = scenes_in_turn(plans)
    assert len(order) == 40
    assert all(len({spec.policy for spec in scene}) == 3 for scene in order)
    assert all(len({(spec.task, spec.config, spec.seed) for spec in scene}) == 1 for scene in order)
    assert len({(scene[0].task, scene[0].config) for scene in order[:4]}) == 4
    with pytest.raises(UserError, match="isn't in all of the 3 runs"):
        scenes_in_turn([plans[0], plans[1], plans[2][:-1]])
    with pytest.raises(UserError, match="isn't in all of the 3 runs"):
        scenes_in_turn([plans[0], plans[1][1:], plans[2][1:]])


def test_names_are_as_short_as_tells_them_apart():
    def policy(checkpoint, digest="0"):
        values = {"checkpoint": checkpoint, "checkpoint_digest": digest, "step": 1, "execute_steps": 1}
        return PolicyInfo(adapter="x", digest=digest * 64, action_type="qpos", device="cpu", privileged=False, **values)

    assert unique_names([policy("a/step_1"), policy("a/step_2")]) == ["step_1", "step_2"]
    assert unique_names([policy("r/a/step_1"), policy("r/b/step_1")]) == ["a/step_1", "b/step_1"]
    assert unique_names([policy(None, "1"), policy(None, "2")]) == ["x 111111", "x 222222"]


def test_the_figure_has_steps_to_scale(tmp_path):
    runs = sweep_of(tmp_path, drawn(1, 0.5), drawn(2, 0.5), drawn(3, 0.5))
    scores = score_sweep(runs)
    assert by_step(scores)
    lines = series(scores)
    assert [line.name for line in lines] == ["?2c", "?2r", "mean"]
    assert [point.x for point in lines[0].points] == [4, 50, 96]
    for entry, point in zip(scores.entries, lines[2].points, strict=True):
        assert point.y == pytest.approx(100 - 100 * entry.value.value)
        assert point.high < point.y < point.low
    assert ticks(scores) == ((4, "1,000"), (50, "2,000"), (96, "3,000"))
