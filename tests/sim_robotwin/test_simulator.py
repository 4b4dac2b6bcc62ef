"""RoboTwin's own task code, driven through the simulator contract."""

from __future__ import annotations

import io
import os
import signal
import time

import numpy as np
import pytest
from PIL import Image
from robotwin_scenes import scene

from evalkit.core.errors import SimulatorError
from evalkit.core.tasks import STANDIN_TASKS

pytestmark = pytest.mark.sim
CAMERAS = ("head_camera", "left_camera", "right_camera")


def wiggle(state, steps, seed=0):
    """Actions that move all joints a little around ``state``."""
    rng = np.random.default_rng(seed)
    actions = np.repeat(state[None], steps, 0) + np.cumsum(rng.uniform(-0.02, 0.02, (steps, 14)), axis=0)
    actions[:, [6, 13]] = np.clip(actions[:, [6, 13]], 0, 1)
    return actions


@pytest.mark.parametrize("config", ["demo_clean", "demo_randomized"])
def test_same_seed_same_scene_same_pictures_whatever_ran_before(simulator, make_simulator, config):
    here = scene("click_bell", config, seed=100003)

    def run(sim):
        info = sim.reset(here)
        seen = sim.observe(CAMERAS)
        sim.apply(wiggle(seen.state, 3), "qpos")
        return info.state_digest, info.clutter, sim.state_digest(), {k: v.tobytes() for k, v in seen.images.items()}

    first = run(simulator)
    simulator.reset(scene("stack_blocks_two", "demo_randomized", seed=100001))
    simulator.expert()
    assert run(simulator) == first
    assert run(make_simulator()) == first


def test_every_standin_task_sets_up_and_gives_pictures_and_sentences(simulator):
    for task in STANDIN_TASKS:
        simulator.reset(scene(task))
        seen = simulator.observe(["head_camera"])
        assert seen.images["head_camera"].shape == (240, 320, 3)
        assert seen.images["head_camera"].std() > 5, task
        assert seen.state.shape == (14,)
        assert seen.endpose.shape == (16,)


def test_the_experts_actions_replayed_through_take_action_succeed(simulator):
    here = scene("click_bell")
    simulator.reset(here)
    expert = simulator.expert(record_every=15)
    assert expert.success
    assert expert.reason == "ok"
    simulator.reset(here)
    result = simulator.apply(np.stack([frame.state for frame in expert.frames])[1:], "qpos")
    assert result.success
    assert result.finished
    assert result.success_step == result.total_steps


def test_frames_compressed_in_the_worker_show_what_raw_frames_show(simulator):
    here = scene("click_bell")
    simulator.reset(here)
    raw = simulator.expert(record_every=60, cameras=["head_camera"]).frames
    simulator.reset(here)
    small = simulator.expert(record_every=60, cameras=["head_camera"], jpeg_quality=95).frames
    assert len(small) == len(raw) > 2
    for one, other in zip(small, raw, strict=True):
        assert not one.images
        assert np.array_equal(one.state, other.state)
        shown = np.asarray(Image.open(io.BytesIO(one.jpegs["head_camera"])))
        assert np.abs(shown.astype(int) - other.images["head_camera"]).mean() < 4


def test_the_step_limit_ends_a_trial(simulator):
    simulator.reset(scene("click_bell", horizon_steps=5))
    state = simulator.observe([]).state
    first = simulator.apply(wiggle(state, 3), "qpos")
    assert (first.steps, first.finished) == (3, False)
    second = simulator.apply(wiggle(state, 4), "qpos")
    assert (second.steps, second.total_steps, second.finished, second.success) == (2, 5, True, False)


def test_evaluation_and_demonstrations_use_different_textures(simulator):
    seen = simulator.reset(scene("click_bell", "demo_randomized", evaluation=False)).textures
    unseen = simulator.reset(scene("click_bell", "demo_randomized", evaluation=True)).textures
    assert str(seen["table"]).startswith("seen/")
    assert str(unseen["table"]).startswith("unseen/")


def test_sentences_depend_on_their_arguments_only(simulator):
    info = {"{A}": "050_bell/base1", "{a}": "left"}
    first = simulator.instructions("click_bell", info, "unseen", 7, 5)
    assert first == simulator.instructions("click_bell", info, "unseen", 7, 5)
    assert len(first) == 5
    assert all("{" not in sentence for sentence in first)
    assert first != simulator.instructions("click_bell", info, "unseen", 8, 5)
    with pytest.raises(SimulatorError, match="no seen instruction template"):
        simulator.instructions("click_bell", {"{Z}": "x"}, "seen", 1, 5)


def test_an_unknown_task_is_an_error_and_the_worker_lives_on(simulator):
    here = scene("click_bell")
    broken = type(here)(**{**vars(here), "task": "click_bel"})
    with pytest.raises(SimulatorError, match="click_bel") as caught:
        simulator.reset(broken)
    assert caught.value.kind == "task_code"
    simulator.reset(here)


def test_a_killed_worker_is_reported_and_replaced(make_simulator):
    sim = make_simulator()
    sim.reset(scene("click_bell"))
    os.kill(sim.pid, signal.SIGSEGV)
    with pytest.raises(SimulatorError) as caught:
        sim.observe([])
    assert (caught.value.kind, caught.value.signal) == ("crash", signal.SIGSEGV)
    assert sim.reset(scene("click_bell")).state_digest


def test_a_worker_that_hangs_is_killed_at_the_limit(make_simulator):
    sim = make_simulator(request_limit_s=30.0)
    sim.reset(scene("click_bell"))
    pid = sim.pid
    os.kill(pid, signal.SIGSTOP)
    sim._limit_s = 1.0
    start = time.monotonic()
    with pytest.raises(SimulatorError, match="no answer to 'observe'") as caught:
        sim.observe([])
    assert caught.value.kind == "hang"
    assert time.monotonic() - start < 10
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_fingerprint_names_what_decides_a_trial(simulator):
    found = simulator.fingerprint()
    assert found.backend == "robotwin"
    assert found.assets == "stand-in"
    assert len(found.assets_digest) == 64
    assert found.physics.startswith("sapien==")
    assert found.digest != found.physics_digest
