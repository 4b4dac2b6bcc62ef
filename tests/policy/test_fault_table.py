"""The table of faults in docs/policies/faults.md names tests that exist and words that evalkit says."""

import re
from pathlib import Path

import pytest

from evalkit.core.outcome import Outcome

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "policies" / "faults.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| fault ")
]
SOURCE = " ".join(
    re.sub(r'"\s*\n\s*f?"', "", path.read_text())  # a message that is written over two lines is one
    for folder in ("evalkit", "policies")
    for path in (ROOT / folder).rglob("*.py")
)
TESTS = {
    name for path in (ROOT / "tests").rglob("*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
}
WHEN = re.compile(r"^(before trial 1|check|never|`policy_error`)")


def test_the_table_is_there():
    assert len(ROWS) > 40
    assert all(len(row) == 4 for row in ROWS)
    assert Outcome.POLICY_ERROR.value == "policy_error"


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_row_is_true(row):
    _, says, when, tests = row
    assert WHEN.match(when), when
    for said in re.findall(r"`([^`]+)`", says):
        assert said in SOURCE, said
    for kind in re.findall(r"`(action_\w+)`", when):
        assert f'"{kind}"' in SOURCE
    named = re.findall(r"`(\w+)`", tests)
    assert named
    assert [name for name in named if name not in TESTS] == []
