from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from synthetic import card, make_run, split

from evalkit.cli.main import run_cli
from evalkit.core.tasks import TASKS
from evalkit.report.html_references import published_references


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", {("click_bell", "demo_clean"): split(1, 2)}, training=card()).folder


def test_the_page_is_written_where_it_is_wanted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"wrote {folder / 'report.html'}\n"
    assert run_cli(["report", str(folder), "--out", str(tmp_path / "new/page.html")]) == 0
    assert (tmp_path / "new/page.html").read_text() == (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--out", "."], ". is a folder: give --out the name of a file"),
        (["--out", "x.html", "--serve"], "--out and --serve exclude each other"),
        (["--with", "x-wham"], "unknown published model 'x-wham': did you mean x-wam"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert run_cli(["report", str(folder), *arguments]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert len(error.strip().splitlines()) == 1


def test_no_run_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["report", str(tmp_path)]) == 2
    assert "isn't a run" in capsys.readouterr().err


def test_serve_answers_until_it_is_interrupted(folder: Path) -> None:
    command = [sys.executable, "-m", "evalkit.cli.main", "report", str(folder), "--serve", "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background ignores the signal, and children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as server:
        assert server.stdout
        address = server.stdout.readline().split()[0]
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert b"click_bell" in answer.read()
        os.kill(server.pid, signal.SIGINT)
        _, errors = server.communicate(timeout=20)
    assert (server.returncode, errors) == (130, "interrupted\n")
    assert not (folder / "report.html").exists()


def test_published_references_carry_their_labels() -> None:
    x_wam, pi = published_references()
    assert (x_wam.name, x_wam.labels) == ("x-wam@leaderboard", {"demo_clean": "c2c", "demo_randomized": "c2r"})
    assert pi.rates["demo_clean"]["adjust_bottle"] == 0.99
    assert set(x_wam.rates["demo_randomized"]) == set(TASKS)
    assert published_references(()) == ()


def test_making_a_page_loads_nothing_heavy(folder: Path) -> None:
    code = (
        "import sys; from evalkit.cli.main import run_cli; "
        f"code = run_cli(['report', {str(folder)!r}]); "
        "heavy = {'sapien', 'ray', 'torch', 'pandas', 'scipy.stats', 'h5py'} & set(sys.modules); "
        "sys.exit(f'{heavy} loaded' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
