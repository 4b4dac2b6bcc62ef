import os
import signal
import time

import numpy as np
import psutil
import pytest

from evalkit.core.errors import SimulatorError, UnstableSceneError
from evalkit.sim.contract import Scene
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault
from evalkit.sim.fake.process import FakeProcessSimulator
from evalkit.sim.fake.world import AT_RESET, SEVENTHS, unstable_by_sevenths

HOLD = np.tile(np.array([0.0] * 6 + [1.0] + [0.0] * 6 + [1.0]), (10, 1))


def scene(seed=100000, **changes):
    values = {"task": "click_bell", "config": "demo_clean", "settings": {}, "seed": seed, "horizon_steps": 25}
    return Scene(**{**values, **changes})


def goal_actions(world, seed, steps=10):
    actions = HOLD[:1].repeat(steps, axis=0)
    actions[:, 0] = world.goal_rad("click_bell", seed)
    return actions


@pytest.fixture(params=["inside", "process"])
def make(request):
    """Makes simulators of either kind, and closes them."""
    made = []

    def make(world=None, **options):
        world = world or FakeWorld()
        made.append(FakeSimulator(world) if request.param == "inside" else FakeProcessSimulator(world, **options))
        return made[-1]

    yield make
    for sim in made:
        sim.close()


def test_success_stops_a_chunk_and_says_when(make):
    world = FakeWorld()
    sim = make(world)
    sim.reset(scene())
    first = sim.apply(HOLD[:2], "qpos")
    assert (first.steps, first.success, first.finished, first.planner_failures) == (2, False, False, 4)
    result = sim.apply(goal_actions(world, 100000), "qpos")
    assert (result.steps, result.total_steps, result.success_step, result.finished) == (1, 3, 3, True)
    assert sim.apply(HOLD, "qpos").steps == 0


def test_step_limit_cuts_a_chunk(make):
    sim = make()
    sim.reset(scene(horizon_steps=17))
    assert sim.apply(HOLD, "qpos").finished is False
    result = sim.apply(HOLD, "qpos")
    assert (result.steps, result.total_steps, result.finished, result.success) == (7, 17, True, False)


def test_success_on_the_last_step_counts(make):
    world = FakeWorld()
    sim = make(world)
    sim.reset(scene(horizon_steps=3))
    sim.apply(HOLD[:2], "qpos")
    assert sim.apply(goal_actions(world, 100000), "qpos").success_step == 3


def test_nothing_is_left_of_the_scene_before(make):
    fresh, used = make(), make()
    used.reset(scene(100005, task="place_shoe"))
    used.apply(HOLD, "qpos")
    used.expert()
    for sim in (fresh, used):
        sim.reset(scene(100007))
        sim.apply(HOLD[:3] + 0.01, "qpos")
    assert fresh.state_digest() == used.state_digest()
    ours, theirs = fresh.observe(["head_camera"]), used.observe(["head_camera"])
    assert np.array_equal(ours.images["head_camera"], theirs.images["head_camera"])


def test_pictures_belong_to_the_caller(make):
    sim = make()
    sim.reset(scene())
    first = sim.observe(["head_camera", "left_camera"])
    before = first.images["head_camera"].copy()
    first.images["left_camera"][:] = 0
    sim.apply(HOLD[:1] + 0.5, "qpos")
    second = sim.observe(["head_camera", "left_camera"])
    assert np.array_equal(first.images["head_camera"], before)
    assert not np.array_equal(second.images["head_camera"], before)
    assert second.images["left_camera"].any()
    assert not np.shares_memory(second.images["head_camera"], second.images["left_camera"])


def test_expert_reaches_the_goal_and_its_frames_replay(make):
    world = FakeWorld()
    sim = make(world)
    sim.reset(scene())
    result = sim.expert(record_every=15, cameras=["head_camera"])
    assert result.success
    assert result.frames[0].images["head_camera"].shape == (240, 320, 3)
    sim.reset(scene())
    replayed = sim.apply(np.stack([frame.state for frame in result.frames[1:]]), "qpos")
    assert replayed.success
    [sentence] = sim.instructions("click_bell", result.info, "seen", 100000, 1)
    assert f"{world.goal_rad('click_bell', 100000):.3f}" in sentence


def test_validity_rule(make):
    sim = make(SEVENTHS)
    for seed in range(100000, 100016):
        if unstable_by_sevenths(seed):
            with pytest.raises(UnstableSceneError, match=str(seed)):
                sim.reset(scene(seed))
        else:
            sim.reset(scene(seed))
            assert sim.expert().success == (seed % 7 != 4 and seed < 100010)


def test_faults_on_order(make):
    world = FakeWorld(
        faults=(
            Fault(kind="exception", seed=100001, step=2),
            Fault(kind="nan_state", seed=100002, step=0),
            Fault(kind="black_frame", seed=100003, step=0),
            Fault(kind="exception", seed=100004, step=AT_RESET),
        )
    )
    sim = make(world)
    sim.reset(scene(100001))
    assert sim.apply(HOLD[:2], "qpos").steps == 2
    with pytest.raises(SimulatorError, match="step 2"):
        sim.apply(HOLD, "qpos")
    sim.reset(scene(100002))
    assert np.isnan(sim.observe([]).state).any()
    sim.reset(scene(100003))
    assert not sim.observe(["head_camera"]).images["head_camera"].any()
    with pytest.raises(SimulatorError):
        sim.reset(scene(100004))
    sim.reset(scene(100005))
    assert sim.observe(["head_camera"]).images["head_camera"].std() > 0


def test_limited_fault_strikes_so_often_over_all_processes(tmp_path):
    world = FakeWorld(faults=(Fault(kind="exception", seed=100001, step=0, times=2),), memory=tmp_path)
    for _ in range(2):
        sim = FakeSimulator(world)
        sim.reset(scene(100001))
        with pytest.raises(SimulatorError):
            sim.apply(HOLD, "qpos")
    sim = FakeSimulator(world)
    sim.reset(scene(100001))
    assert sim.apply(HOLD, "qpos").steps == 10


def test_crash_names_the_signal_and_the_next_reset_works():
    sim = FakeProcessSimulator(FakeWorld(faults=(Fault(kind="crash", seed=100001, step=1),)))
    sim.reset(scene(100001))
    with pytest.raises(SimulatorError) as caught:
        sim.apply(HOLD, "qpos")
    assert (caught.value.kind, caught.value.signal) == ("crash", signal.SIGSEGV)
    sim.reset(scene(100002))
    assert sim.apply(HOLD, "qpos").steps == 10
    sim.close()


def test_hang_that_ignores_sigterm_is_killed_at_the_deadline():
    sim = FakeProcessSimulator(FakeWorld(faults=(Fault(kind="hang", seed=100001, step=0),)), deadline_s=1.0)
    sim.reset(scene(100001))
    process = psutil.Process(sim.pid)
    started = time.monotonic()
    with pytest.raises(SimulatorError) as caught:
        sim.apply(HOLD, "qpos")
    assert caught.value.kind == "hang"
    assert time.monotonic() - started < 10
    assert not process.is_running()
    sim.close()


def test_process_ends_with_its_pipe():
    sim = FakeProcessSimulator(FakeWorld())
    sim.reset(scene())
    pid = sim.pid
    sim.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
