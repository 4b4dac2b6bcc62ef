"""The benchmarks are programs beside the package: their modules are found here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="session", autouse=True)
def benchmarks():
    """Benchmarks' folders on the path, for as long as these tests run."""
    added = [str(BENCHMARKS), str(BENCHMARKS / "sides")]
    sys.path[:0] = added
    yield
    for folder in added:
        sys.path.remove(folder)
