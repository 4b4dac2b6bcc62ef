from __future__ import annotations

import pytest
from synthetic import card, source

from evalkit.report.text import count, demonstrations, duration, flatten, interval, number, parameters, percent


@pytest.mark.parametrize(
    ("fraction", "digits", "text"),
    [
        (0.8805, 1, "88.1"),
        (0.8806, 1, "88.1"),
        (0.89030, 1, "89.0"),
        (0.005, 0, "1"),
        (1.0, 1, "100.0"),
        (0, 2, "0.00"),
    ],
)
def test_percent_rounds_halves_up(fraction: float, digits: int, text: str) -> None:
    assert percent(fraction, digits) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.25, "4.3 s"), (185, "3 min 5 s"), (31_930, "8 h 52 min"), (59.96, "60.0 s")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_counts() -> None:
    assert count(469_787) == "469,787"
    assert number(1, "task") == "1 task"
    assert number(0, "task") == "0 tasks"
    assert [parameters(value) for value in (7_654_321, 5_511_465_172, 999)] == ["7.65 M", "5.51 B", "999"]
    assert interval(0.4799, 0.7094) == "48.0 to 70.9"


def test_flatten() -> None:
    assert flatten({"a": 1, "b": {"c": {"d": 2}, "e": [3]}}) == {"a": 1, "b.c.d": 2, "b.e": [3]}


def test_demonstrations_are_listed_by_configuration() -> None:
    both = card(
        source("click_bell"), source("grab_roller"), source("click_bell", "demo_randomized", episodes=1, clips=9)
    )
    assert demonstrations(both) == [
        "demo_clean: 100 episodes of 2 tasks, 10,000 clips, stand-in assets",
        "demo_randomized: 1 episode of 1 task, 9 clips, stand-in assets",
    ]
