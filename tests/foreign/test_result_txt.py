from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.core.errors import UserError
from evalkit.store.foreign.reading import read_scores
from evalkit.store.foreign.robotwin import BATCH, NO_TRIALS, parse
from evalkit.store.foreign.scores import ImportedScores, with_stated

LEGACY, NEW = "2026-08-01 12:30:00", "2026-08-09_01-02-03_123456"


def write(
    root: Path, task: str, rate: str = "0.83", *, when: str = LEGACY, policy: str = "ACT", checkpoint: str = "c-50"
) -> Path:
    folder = root / "eval_result" / task / policy / "demo_clean" / checkpoint / when
    folder.mkdir(parents=True)
    (folder / "_result.txt").write_text(f"Timestamp: {when}\n\nInstruction Type: unseen\n\n{rate}")
    return folder / "_result.txt"


def read(path: Path, **options: object) -> ImportedScores:
    return read_scores(path, "robotwin", **options)  # type: ignore[arg-type]


def test_the_legacy_layout(tmp_path: Path) -> None:
    write(tmp_path, "click_bell")
    write(tmp_path, "grab_roller", "1.0")
    scores = read(tmp_path)
    assert scores.policy == "ACT/c-50"
    assert scores.notes == (NO_TRIALS,)
    first, second = scores.tasks
    assert (first.task, first.config, first.rate, first.instruction_split) == (
        "click_bell",
        "demo_clean",
        0.83,
        "unseen",
    )
    assert (second.task, second.rate) == ("grab_roller", 1.0)
    assert (first.trials, first.successes) == (None, None)
    assert first.source == f"eval_result/click_bell/ACT/demo_clean/c-50/{LEGACY}/_result.txt"


def test_the_new_layout_with_a_checkpoint_of_several_folders(tmp_path: Path) -> None:
    write(tmp_path, "click_bell", when=NEW, checkpoint="RoboTwin-x/step_30000")
    scores = read(tmp_path / "eval_result")
    assert (scores.policy, scores.tasks[0].config) == ("ACT/RoboTwin-x/step_30000", "demo_clean")


@pytest.mark.parametrize("below", ["eval_result/click_bell", f"eval_result/click_bell/ACT/demo_clean/c-50/{LEGACY}"])
def test_a_part_of_the_tree_or_one_file(tmp_path: Path, below: str) -> None:
    file = write(tmp_path, "click_bell")
    assert read(tmp_path / below).tasks[0].task == "click_bell"
    assert read(file).tasks[0].source == "_result.txt"


def test_batch_mode_adds_lines_before_the_rate(tmp_path: Path) -> None:
    file = write(tmp_path, "click_bell", "Batch Workers: 4\nSkipped Seeds: 12\n\n0.9\n\n")
    scores = read(tmp_path)
    assert scores.tasks[0].rate == 0.9
    assert BATCH in scores.notes
    rate, fields = parse(file.read_text(), "x")
    assert (rate, fields["Skipped Seeds"]) == (0.9, "12")


def test_fastwams_names(tmp_path: Path) -> None:
    for name, rate in (("_result_clean.txt", "0.92"), ("_result_random.txt", "0.02")):
        (tmp_path / "run/click_bell").mkdir(parents=True, exist_ok=True)
        (tmp_path / "run/click_bell" / name).write_text(f"Timestamp: x\n\n{rate}\n")
    scores = read(tmp_path)
    assert [(item.config, item.rate) for item in scores.tasks] == [("demo_clean", 0.92), ("demo_randomized", 0.02)]
    assert scores.policy is None


def test_several_time_stamps_of_one_task_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "click_bell", "0.9")
    write(tmp_path, "click_bell", "0.7", when="2026-08-02 00:00:00")
    with pytest.raises(UserError, match=r"click_bell under demo_clean has 2 results .*--only.*--latest"):
        read(tmp_path)
    latest = read(tmp_path, latest=True)
    assert latest.tasks[0].rate == 0.7  # the last, not the best
    assert "1 older results" in latest.notes[-1]
    assert read(tmp_path, only="2026-08-01").tasks[0].rate == 0.9


def test_several_checkpoints_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "click_bell")
    write(tmp_path, "grab_roller", policy="DP3")
    with pytest.raises(UserError, match=r"several checkpoints \(ACT/c-50, DP3/c-50\): name one with --only"):
        read(tmp_path)
    assert [item.task for item in read(tmp_path, only="/DP3/").tasks] == ["grab_roller"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: its run was cut off"),
        ("Timestamp: x\n\nInstruction Type: seen\n", "ends in 'Instruction Type: seen'"),
        ("nan", "isn't a fraction"),
        ("83.0", "isn't a fraction"),
        ("-0.1", "isn't a fraction"),
    ],
)
def test_files_that_hold_no_rate(tmp_path: Path, content: str, message: str) -> None:
    write(tmp_path, "click_bell").write_text(content)
    with pytest.raises(UserError, match=message):
        read(tmp_path)


def test_paths_that_say_too_little(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no _result\.txt"):
        read(tmp_path)
    with pytest.raises(UserError, match="doesn't exist"):
        read(tmp_path / "nope")
    (tmp_path / "_result.txt").write_text("0.5")
    with pytest.raises(UserError, match="isn't where RoboTwin writes it"):
        read(tmp_path)
    (tmp_path / "_result.txt").unlink()
    (tmp_path / "my_task").mkdir()
    (tmp_path / "my_task/_result_clean.txt").write_text("0.5")
    with pytest.raises(UserError, match="'my_task' isn't a task of RoboTwin"):
        read(tmp_path)


def test_a_stated_number_of_trials_must_fit(tmp_path: Path) -> None:
    write(tmp_path, "click_bell", "0.83")
    stated = with_stated(read(tmp_path), trials=100)
    assert (stated.tasks[0].successes, stated.tasks[0].trials) == (83, 100)
    assert "stated by whoever imported the result" in stated.notes[-1]
    with pytest.raises(UserError, match=r"0\.83 of click_bell isn't a whole number of 50 trials"):
        with_stated(read(tmp_path), trials=50)
    with pytest.raises(UserError, match="was measured under demo_clean"):
        with_stated(read(tmp_path), config="demo_randomized")
