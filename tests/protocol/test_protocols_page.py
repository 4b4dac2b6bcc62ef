"""docs/protocols.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalkit.protocol.comparability import BLOCKING_VALUES, SEVERITIES
from evalkit.protocol.sheets import known_sheets, load_sheet
from evalkit.provenance import rules

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/protocols.md").read_text()


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_table_of_severities() -> None:
    table = {re.sub("`", "", row[0]): row[1] for row in rows("Which comparisons are legal")}
    expected = {
        name: f"{severity}; blocks if one side is `{BLOCKING_VALUES[name]}`" if name in BLOCKING_VALUES else severity
        for name, severity in SEVERITIES.items()
    }
    assert table == expected
    assert list(table) == list(SEVERITIES)


def test_the_table_of_protocols() -> None:
    table = {row[0].strip("`"): row for row in rows("The files")}
    assert set(table) == set(known_sheets())
    for name, row in table.items():
        first = str(load_sheet(name).facts["first_seed"])
        assert row[3].startswith(first.split(" ")[0].rstrip(","))


def test_the_table_of_findings() -> None:
    source = Path(rules.__file__).read_text()
    codes = dict(re.findall(r'code="(\w+)", severity="(\w+)"', source))
    codes |= dict.fromkeys(("parent_without_card", "parent_card_unreadable", "unknown_weights"), "error")
    table = {code: row[1] for row in rows("What provenance can find") for code in re.findall(r"`(\w+)`", row[0])}
    assert table == codes


def test_the_table_of_traps() -> None:
    table = rows("RoboTwin's traps, one by one")
    numbers = {int(number) for row in table for number in re.findall(r"T(\d+)", row[0])}
    numbers |= {20, 21, 22}  # "T19 to T23"
    numbers |= {12, 13, 33}  # named below the table
    assert numbers == set(range(1, 38))
    assert {row[3] for row in table} == {"fresh", "order", "no", "same"}
    for row in table:
        named = re.findall(r"`([\w/]+\.py)`", row[4])
        assert named
        for name in named:
            assert list((ROOT / "tests").rglob(name)), name


def test_the_table_of_scoring_keys() -> None:
    keys = {row[0].strip("`") for row in rows("Repeating another paper's evaluation")}
    assert keys == {"outcomes", "instead", "sentences_for", "without_tasks", "labels"}


COMMANDS = (
    "run --protocol",
    "run --ckpt step_30000 --bug-compatible",
    "protocol list",
    "protocol show",
    "protocol diff",
    "protocol drift",
    "provenance",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_shown(name: str) -> None:
    assert f"evalkit {name}" in PAGE
