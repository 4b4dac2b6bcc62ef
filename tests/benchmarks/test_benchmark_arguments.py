"""A misspelt task ends each benchmark at once, in one line, before anything is installed or simulated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("program", ["parity", "robotwin_loop", "scaling", "throughput"])
def test_a_misspelt_task_is_named_with_the_nearest(tmp_path, program):
    command = [
        sys.executable,
        str(BENCHMARKS / f"{program}.py"),
        "--tasks",
        "click_bel",
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert "argument --tasks: unknown task 'click_bel': did you mean click_bell" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
