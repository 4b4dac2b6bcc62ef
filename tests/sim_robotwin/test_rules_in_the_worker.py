"""Rules inside RoboTwin's process: when success counts, in which order files come, what an expert's exception is."""

from __future__ import annotations

import glob
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from robotwin_scenes import scene as make_scene

from evalkit.sim.robotwin.host import WORKER


@pytest.mark.sim
def test_success_counts_when_the_scene_says(simulator):
    scene = make_scene("click_bell")
    simulator.reset(scene)
    frames = simulator.expert(record_every=15).frames
    actions = np.stack([frame.state for frame in frames[4::4]])
    simulator.reset(scene)
    at_once = simulator.apply(actions, "qpos")
    assert at_once.success
    assert at_once.success_step < len(actions)

    limit = len(actions) + 2
    simulator.reset(replace(scene, success="at_end", horizon_steps=limit))
    before = simulator.apply(actions, "qpos")
    assert (before.total_steps, before.success, before.finished) == (len(actions), False, False)
    end = simulator.apply(np.repeat(actions[-1:], 4, axis=0), "qpos")
    assert (end.total_steps, end.success, end.success_step, end.finished) == (limit, True, limit, True)

    simulator.reset(replace(scene, success="after_each_chunk"))
    chunk = simulator.apply(actions, "qpos")
    assert (chunk.success, chunk.success_step) == (True, len(actions))


def test_files_come_sorted_unless_they_are_to_come_as_they_do(monkeypatch):
    monkeypatch.setattr(glob, "glob", lambda pattern: ["b", "a"])
    monkeypatch.syspath_prepend(str(WORKER))
    import shims

    try:
        shims.sort_file_lists()
        assert glob.glob("*") == ["a", "b"]
        shims.leave_file_lists(as_they_come=True)
        assert glob.glob("*") == ["b", "a"]
        shims.leave_file_lists(as_they_come=False)
        assert glob.glob("*") == ["a", "b"]
    finally:
        del sys.modules["shims"]


def raise_text():
    raise "no such robot"  # noqa: B016  (RoboTwin does this in several places)


def raise_unreachable():
    raise AssertionError("no pose to move to\nand more")


@pytest.mark.parametrize(
    ("play_once", "reason"),
    [
        (raise_text, "error: TypeError: exceptions must derive from BaseException"),
        (raise_unreachable, "error: AssertionError: no pose to move to"),
        (lambda: {"info": {"{A}": 1}}, "ok"),
    ],
)
def test_an_experts_exception_is_a_rejection_with_its_text(monkeypatch, play_once, reason):
    monkeypatch.syspath_prepend(str(WORKER))
    before = set(sys.modules)
    try:
        from world import World

        here = World.__new__(World)
        here.env = SimpleNamespace(play_once=play_once, plan_success=True, check_success=lambda: True)
        here._take_plan_failures, here.state_digest = dict, lambda: "d"
        verdict, _ = here.expert(None, [], None)
    finally:
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(WORKER):
                del sys.modules[name]
    assert (verdict["success"], verdict["reason"]) == (reason == "ok", reason)
