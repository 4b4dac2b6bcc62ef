from __future__ import annotations

import json
from pathlib import Path

import pytest
from two_runs import checkpoint_run

from evalkit.cli.main import run_cli

BOTH = {"demo_clean": 0.6, "demo_randomized": 0.3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    checkpoint_run(folder / "late", BOTH)
    checkpoint_run(folder / "early", {"demo_clean": 0.2, "demo_randomized": 0.1}, step=10_000, seed=1)
    return str(folder / "late"), str(folder / "early")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_cli(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("width", [80, 100])
def test_tables_fit_their_width(
    runs: tuple[str, str], width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (
        ("compare", *runs, "--with", "x-wam,pi0.5", "--protocol", "x-wam", "--per-task"),
        ("compare", "--with", "x-wam@leaderboard,pi0.5@leaderboard"),
        ("published", "list"),
        ("published", "show", "x-wam"),
        ("published", "audit", "--averages"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= width
        assert "…" not in out, arguments


def test_two_runs_on_the_same_seeds(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run(capsys, "compare", *runs)
    assert code == 0
    text = " ".join(out.split())
    assert "late against early" in text
    assert "demo_clean c2c against c2c; paired on 240 shared scenes" in text
    assert text.count("verdict: first is better: told apart") == 3  # both configurations and their average
    assert "tasks like these" in text
    assert "McNemar over tasks (Cochran-Mantel-Haenszel)" in text


def test_published_numbers_beside_a_run(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run(capsys, "compare", runs[0], "--with", "x-wam", "--protocol", "x-wam")
    lines = out.splitlines()
    why = "trained on 50 clean + 500 randomized demonstrations of each of 50 tasks"
    assert f"· 90.7 of x-wam@paper isn't c2r but mixed2r: {why}" in lines
    overview = " ".join(out[: out.index("late  against protocol")].split())
    assert "x-wam@leaderboard c2c 70.0" in overview
    assert "c2r 25.8" in overview
    assert "mixed2c 89.8 as stated" in overview
    assert "demo_randomized  c2r against mixed2r; verdict: not comparable: training, assets differ" in lines


def test_a_protocol_brings_its_published_tables(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "compare", runs[0], "--protocol", "x-wam", "--json")
    values = json.loads(out)
    assert [side["name"] for side in values["sides"]] == ["late", "x-wam@paper"]
    blocking = {
        item["name"] for item in values["against_protocol"]["late"]["demo_clean"] if item["severity"] == "blocks"
    }
    assert {"training", "tasks", "assets"} <= blocking


def test_json_holds_what_the_tables_show(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "compare", *runs, "--with", "x-wam@leaderboard", "--json")
    values = json.loads(out)
    assert values["unit"] == "fraction"
    first, second, third = values["comparisons"]
    assert (first["first"], first["second"]) == ("late", "early")
    assert first["configs"][0]["legal"] is True
    assert len(first["configs"][0]["tasks"]) == 12
    assert first["average"]["verdict"] == "first is better"
    assert (second["first"], third["first"]) == ("late", "early")
    assert second["configs"][1]["verdict"] == "not comparable"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "nothing to compare: name a run, or two published tables or more with --with"),
        (["compare", "--with", "x-wam@paper"], "nothing to compare"),
        (["compare", "{late}"], "one run alone has nothing to be compared with"),
        (["compare", "{late}", "{late}"], "a run is named twice"),
        (["compare", "{late}", "--with", ","], "--with names nothing"),
        (["compare", "{late}", "--with", "x-wan"], "unknown published model 'x-wan': did you mean x-wam"),
        (["compare", "{late}", "{early}", "--protocol", "x-wan"], "unknown protocol 'x-wan': did you mean x-wam"),
        (["compare", "nowhere"], "nowhere"),
        (["published", "show", "nobody"], "unknown published model 'nobody'"),
    ],
)
def test_bad_input_is_one_line(
    runs: tuple[str, str],
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    named = [argument.format(late=runs[0], early=runs[1]) for argument in arguments]
    code, out, err = run(capsys, *named)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_runs_of_one_name_are_told_apart_by_their_folders(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint_run(tmp_path / "late", BOTH, step=20_000, seed=3)
    _, out, _ = run(capsys, "compare", runs[0], str(tmp_path / "late"), "--json")
    assert [side["name"] for side in json.loads(out)["sides"]] == [runs[0], str(tmp_path / "late")]


@pytest.mark.parametrize(
    "command",
    ["compare --with x-wam --protocol x-wam", "published audit", "compare --with leaderboard --no-per-task"],
)
def test_the_documentation_holds_real_output(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(capsys, *command.split())
    printed = "\n".join(line.rstrip() for line in out.splitlines())
    blocks = (Path(__file__).parents[2] / "docs/comparing.md").read_text().split("```\n")[1::2]
    if "leaderboard" in command:
        (block,) = [block for block in blocks if block.startswith("average: 50 tasks")]
    else:
        (block,) = [block for block in blocks if block.startswith(f"$ evalkit {command}\n")]
        block = block.partition("\n")[2].removesuffix("...\n")
    assert block.rstrip() in printed


def test_published_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "published", "show", "x-wam", "--json")
    board, paper = json.loads(out)
    assert board["labels"] == {"demo_clean": "c2c", "demo_randomized": "c2r"}
    assert len(board["rates"]["demo_clean"]) == 50
    assert paper["training_as_stated"] == "robotwin_sft (paper protocol)"
    _, out, _ = run(capsys, "published", "list", "--json")
    assert len(json.loads(out)) == 47
    _, out, _ = run(capsys, "published", "audit", "--json")
    values = json.loads(out)
    assert {"impossible rate", "granularity"} <= {item["kind"] for item in values["tables"]}


def test_audit_says_how_many(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run(capsys, "published", "audit")
    assert "47 tables: " in out
    assert "395 averages read by machine, unchecked: 180 x missing tasks" in out
