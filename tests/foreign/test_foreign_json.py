from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.store.foreign.reading import read_scores
from evalkit.store.foreign.scores import canonical_task, with_stated


def lerobot(*tasks: tuple[str, list[Any]]) -> dict[str, Any]:
    return {
        "per_task": [{"task_group": name, "task_id": 0, "metrics": {"successes": ends}} for name, ends in tasks],
        "per_group": {},
        "overall": {"pc_success": 50.0},
    }


def vla_eval(task: str, ends: list[bool], *, errors: int = 0, **changes: Any) -> dict[str, Any]:
    episodes: list[dict[str, Any]] = [{"episode_id": i, "metrics": {"success": end}} for i, end in enumerate(ends)]
    episodes += [{"episode_id": 99, "metrics": {}, "failure_reason": "timeout"}] * errors
    entry = {"task": task, "episodes": episodes, "num_episodes": len(episodes)}
    if ends:
        entry["mean_success"] = round(sum(ends) / len(ends), 4)
    parameters = {"task_name": task, "task_config": "demo_randomized", "instruction_type": "seen", "seed": 0}
    return {"benchmark": "RoboTwin", "tasks": [entry], "config": {"params": parameters}, **changes}


def test_lerobot(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/eval_info.json").write_text(json.dumps(lerobot(("click_bell", [True, False, True, True]))))
    (tmp_path / "eval_info.json").write_text(json.dumps(lerobot(("open_laptop", [0, 0]))))
    scores = read_scores(tmp_path, "lerobot")
    first, second = scores.tasks
    assert (first.task, first.successes, first.trials, first.rate, first.config) == ("click_bell", 3, 4, 0.75, None)
    assert (second.task, second.rate, second.source) == ("open_laptop", 0.0, "eval_info.json")
    assert "doesn't state the task configuration" in scores.notes[0]
    stated = with_stated(scores, config="demo_clean")
    assert {item.config for item in stated.tasks} == {"demo_clean"}
    with pytest.raises(UserError, match="says 4 trials of click_bell: leave --trials 100 out"):
        with_stated(scores, trials=100)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"per_episode": [{"success": True}], "aggregated": {}}, "older form, which doesn't name the task"),
        ({"overall": {}}, "isn't LeRobot's eval_info.json"),
        ([1], "isn't LeRobot's eval_info.json"),
        (lerobot(("click_bell", [])), "aren't one true or false for each episode"),
        (lerobot(("click_bell", [0.5])), "aren't one true or false for each episode"),
        (lerobot(("libero_10", [True])), "unknown task 'libero_10'"),
        (lerobot(("click_bell", [True]), ("click_bell", [False])), "two results for click_bell"),
    ],
)
def test_other_json_isnt_lerobots(tmp_path: Path, values: Any, message: str) -> None:
    (tmp_path / "eval_info.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=message):
        read_scores(tmp_path / "eval_info.json", "lerobot")


def test_half_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "eval_info.json").write_text('{"per_task": [')
    with pytest.raises(UserError, match=r"eval_info\.json isn't JSON"):
        read_scores(tmp_path, "lerobot")


def x_vla(folder: Path, lines: list[tuple[str, Any]], rates: list[tuple[str, Any]] | None = None) -> Path:
    for name, content in (("results.json", lines), ("perc.json", rates)):
        if content is not None:
            text = "".join(json.dumps({f"sim/{task}": value}) + "\n" for task, value in content)
            (folder / name).write_text(text)
    return folder


def test_x_vla(tmp_path: Path) -> None:
    lines = [("click_bell", 1), ("click_bell", 0), ("click_bell", 1), ("stack_blocks_two", 0)]
    scores = read_scores(x_vla(tmp_path, lines, [("click_bell", 66.7), ("stack_blocks_two", 0.0)]), "x-vla")
    assert [(item.task, item.successes, item.trials) for item in scores.tasks] == [
        ("click_bell", 2, 3),
        ("stack_blocks_two", 0, 1),
    ]
    assert any("no denominator" in note for note in scores.notes)


def test_two_x_vla_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    x_vla(tmp_path, [("click_bell", 1)] * 20, [("click_bell", 100.0), ("click_bell", 100.0)])
    with pytest.raises(UserError, match="click_bell was evaluated 2 times"):
        read_scores(tmp_path, "x-vla")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"sim/click_bell": 66.7}', r"66\.7, not 0 or 1: give results\.json, not perc\.json"),
        ('{"click_bell": 1}', "names 'click_bell', not sim/<task>"),
        ('{"sim/a": 1, "sim/b": 1}', "line 1 isn't of the form"),
        ("[1]", "line 1 isn't of the form"),
        ("{", "line 1 isn't of the form"),
    ],
)
def test_other_lines_arent_x_vlas(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "results.json").write_text(line + "\n")
    with pytest.raises(UserError, match=message):
        read_scores(tmp_path, "x-vla")


def test_vla_eval(tmp_path: Path) -> None:
    (tmp_path / "a_aggregate.json").write_text(json.dumps(vla_eval("click_bell", [True, False], errors=3)))
    (tmp_path / "b_aggregate.json").write_text(json.dumps(vla_eval("grab_roller", [True] * 4, partial=True)))
    scores = read_scores(tmp_path, "vla-eval")
    first, second = scores.tasks
    assert (first.successes, first.trials, first.errors, first.config) == (1, 2, 3, "demo_randomized")
    assert (first.instruction_split, second.errors) == ("seen", 0)
    assert scores.notes == ("b_aggregate.json says of itself that it is partial",)


def test_what_vla_eval_doesnt_state_stays_unknown(tmp_path: Path) -> None:
    values = vla_eval("click_bell", [True], config={"params": {"skip_expert_check": True}})
    (tmp_path / "x_aggregate.json").write_text(json.dumps(values))
    scores = read_scores(tmp_path, "vla-eval")
    assert (scores.tasks[0].config, scores.tasks[0].instruction_split) == (None, None)
    assert scores.notes == (
        "seeds weren't filtered by the expert (skip_expert_check)",
        "the export doesn't state task_config",
        "the export doesn't state instruction_type",
        "the export doesn't state seed",
    )


def test_a_vla_eval_mean_that_its_episodes_contradict_is_refused(tmp_path: Path) -> None:
    values = vla_eval("click_bell", [True, False])
    for stated in (0.9, "0.5", float("nan")):
        values["tasks"][0]["mean_success"] = stated
        (tmp_path / "x_aggregate.json").write_text(json.dumps(values))
        with pytest.raises(UserError, match=f"a mean of {stated}, its episodes give 1 of 2"):
            read_scores(tmp_path, "vla-eval")


def test_a_vla_eval_task_of_errors_only_is_no_zero(tmp_path: Path) -> None:
    (tmp_path / "x_aggregate.json").write_text(json.dumps(vla_eval("click_bell", [], errors=5)))
    with pytest.raises(UserError, match="none of the 5 episodes of click_bell ended without an error"):
        read_scores(tmp_path, "vla-eval")


def test_names_and_kinds(tmp_path: Path) -> None:
    assert canonical_task(" Blocks Ranking RGB ") == "blocks_ranking_rgb"
    assert canonical_task("Place A2B-Left") == "place_a2b_left"
    assert canonical_task("Rotate QRcode") == "rotate_qrcode"
    with pytest.raises(UnknownNameError, match="did you mean move_pillbottle_pad"):
        canonical_task("move_pillbottles_pad")
    with pytest.raises(UnknownNameError, match="unknown kind of results 'lerobots': did you mean lerobot"):
        read_scores(tmp_path, "lerobots")
    with pytest.raises(UserError, match="--only and --latest choose among RoboTwin's results"):
        read_scores(tmp_path, "lerobot", only="x")
    with pytest.raises(UserError, match="--unit is for csv"):
        read_scores(tmp_path, "lerobot", unit="percent")
