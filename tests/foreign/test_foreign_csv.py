from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.store.foreign.tables import Unit, read, read_csv


def table(folder: Path, content: str | bytes) -> Path:
    path = folder / "scores.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rates(path: Path, unit: Unit | None = None) -> dict[tuple[str, str | None], float]:
    return {(item.task, item.config): item.rate for item in read(path, unit=unit).tasks}


SPREADSHEET = (
    "\ufeffTask;Clean;Hard\r\n"
    "Click Bell;98,5;12\r\n"
    "Blocks Ranking RGB;72;Still running\r\n"
    "grab_roller;100;N/A\r\n"
    ";;\r\n"
    "Average;90,2;12\r\n"
    ";;\r\n"
    "\r\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_spreadsheets_table(tmp_path: Path, encoding: str) -> None:
    text = SPREADSHEET if encoding == "utf-8" else SPREADSHEET.lstrip("\ufeff")
    path = table(tmp_path, text.encode(encoding))
    assert rates(path) == {
        ("click_bell", "demo_clean"): 0.985,
        ("click_bell", "demo_randomized"): 0.12,
        ("blocks_ranking_rgb", "demo_clean"): 0.72,
        ("grab_roller", "demo_clean"): 1.0,
    }
    notes = read(path).notes
    assert "the row 'Average' is no task: left out" in notes
    assert "Blocks Ranking RGB has 'Still running' under demo_randomized: missing, not 0" in notes
    assert "grab_roller has 'N/A' under demo_randomized: missing, not 0" in notes


def test_one_row_per_task_and_configuration(tmp_path: Path) -> None:
    text = (
        "task,config,score,unit,n\nclick_bell,demo_clean,0.83,fraction,100\nclick_bell,demo_randomized,1,fraction,4\n"
    )
    first, second = read(table(tmp_path, text)).tasks
    assert (first.successes, first.trials, first.config) == (83, 100, "demo_clean")
    assert (second.successes, second.trials, second.rate) == (4, 4, 1.0)


@pytest.mark.parametrize("cell", ["83/100", "83.0%", "83 %", '"83,0"', "83", "83.0", "8.3e1"])
def test_forms_of_a_rate(tmp_path: Path, cell: str) -> None:
    assert rates(table(tmp_path, f"task,clean\nclick_bell,{cell}\n")) == {("click_bell", "demo_clean"): 0.83}


def test_ratios_keep_their_counts(tmp_path: Path) -> None:
    (item,) = read(table(tmp_path, "task\teasy\nclick_bell\t45/50\n")).tasks
    assert (item.successes, item.trials, item.config) == (45, 50, "demo_clean")


def test_a_unit_that_cant_be_told_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "task,clean\nclick_bell,1.0\ngrab_roller,0.5\n")
    with pytest.raises(UserError, match=r"fractions or percent.*give --unit"):
        read(path)
    assert rates(path, "fraction")["grab_roller", "demo_clean"] == 0.5
    assert rates(path, "percent")["grab_roller", "demo_clean"] == 0.005


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("task,clean\nclick_bell,=1+1\n", "line 2: the cell '=1\\+1' is a formula"),
        ("task,clean\n@SUM(A1),5\n", "is a formula"),
        ("task,clean\nclick_bell,good\n", "line 2: 'good' isn't a number"),
        ("task,clean\nclick_bell,120\n", "120 isn't a success rate in percent"),
        ("task,clean\nclick_bell,101/100\n", "101/100 isn't a success rate"),
        ("task,clean,n\nclick_bell,1.3%,100\n", r"1\.3% of click_bell isn't a whole number of 100 trials"),
        ("task,clean\nclick_bell,5\nclick_bell,6\n", "two results for click_bell under demo_clean"),
        ("task,clean,clean\nclick_bell,5,6\n", "the column 'clean' twice"),
        ("task,clean\nclick_bell,5,6\n", "line 2 has 3 cells for 2 columns"),
        ("name,clean\nclick_bell,5\n", "it needs task"),
        ("task,model\nclick_bell,5\n", "it needs task"),
        ("task,score,unit\nclick_bell,5,points\n", "has the units points"),
        ("task,clean\n\n", "holds no rows"),
        ("", "holds no rows"),
        ("task,clean\nAverage,5\n", "holds no csv result"),
        (b"task,clean\nclick_bell\xe9,5\n", "isn't UTF-8 or UTF-16"),
    ],
)
def test_tables_that_would_need_a_guess_are_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(table(tmp_path, content))


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="isn't a file: give the path of one table"):
        read(tmp_path)


def test_binary_data_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="isn't"):
        read(table(tmp_path, b"task,clean\n" + b"x" * 200_000 + b"\x00,5\n"))


def test_misspelt_tasks_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean move_pillbottle_pad"):
        read(table(tmp_path, "task,clean\nmove_pillbottles_pad,5\n"))


def test_evalkits_own_marks_and_sep_lines_are_undone(tmp_path: Path) -> None:
    read_back = read_csv(table(tmp_path, "sep=;\na;b\n'=1;-0,5\n"))
    assert read_back.columns == ("a", "b")
    assert read_back.rows == ({"a": "=1", "b": "-0,5"},)
    assert read_back.lines == (2,)


def test_evalkits_own_table_comes_back(tmp_path: Path) -> None:
    from evalkit.report.export import to_csv

    rows = [
        {"task": "click_bell", "config": "demo_clean", "unit": "percent", "trials_done": "3", "rate": "66.67"},
        {"task": "click_bell", "config": "demo_randomized", "unit": "percent", "trials_done": "3", "rate": ""},
    ]
    (item,) = read(table(tmp_path, to_csv(rows))).tasks
    assert (item.successes, item.trials, item.rate) == (2, 3, 2 / 3)
