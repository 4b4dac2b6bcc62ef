"""Policies and simulators that break in a trial: each ends it as its own kind of error."""

import numpy as np
import pytest
from trial_kit import ChunkPolicy, hold, run

from evalkit.core.errors import SimulatorError
from evalkit.core.outcome import Outcome
from evalkit.episode.decide import decide_batch
from evalkit.policy.contract import Observation
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault
from evalkit.sim.fake.simulator import HOME
from evalkit.sim.fake.world import always


def test_ee_actions_of_a_qpos_policy_execute_nothing():
    record = run(ChunkPolicy(lambda o: np.zeros((8, 16))))
    assert (record.outcome, record.error.kind, record.steps) == (Outcome.POLICY_ERROR, "action_shape", 0)
    assert "(8, 16)" in record.error.message
    assert "14" in record.error.message


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_action_names_step_and_dimension(value):
    def act(observation):
        actions = hold(observation)
        if observation.step >= 10:
            actions[2, 3] = value
        return actions

    record = run(ChunkPolicy(act))
    assert (record.outcome, record.error.kind, record.steps) == (Outcome.POLICY_ERROR, "action_nonfinite", 10)
    assert record.error.message.startswith("at step 10:")
    assert "dimension 3" in record.error.message
    assert record.state_digest


@pytest.mark.parametrize("columns", [(-1.0, 1.0), (255.0, 0.0), (0.5, np.float64(1.02))])
def test_a_gripper_out_of_range_is_an_error(columns):
    def act(observation):
        actions = hold(observation)
        actions[:, [6, 13]] = columns
        return actions

    assert run(ChunkPolicy(act)).error.kind == "action_gripper_range"


def test_arm_joints_and_a_gripper_within_tolerance_are_taken():
    """A box of -1 to 1 would refuse most real actions: only grippers have a range."""

    def act(observation):
        actions = hold(observation)
        actions[:, [0, 7]] = (3.2, -3.2)
        actions[:, [6, 13]] = (-0.001, 1.002)
        return actions

    assert run(ChunkPolicy(act)).outcome is Outcome.FAILURE


@pytest.mark.parametrize(
    ("chunk", "taken"),
    [
        (HOME, False),
        (HOME[None], True),
        (np.tile(HOME, (4, 1)), True),
        (np.tile(HOME, (1, 4, 1)), False),
        ([HOME, HOME], True),
        (np.tile(HOME, (4, 1)).astype(np.float32), True),
        (np.zeros((0, 14)), False),
        (np.tile(HOME, (11, 1)), False),
        (None, False),
        ("go", False),
    ],
)
def test_chunk_forms(chunk, taken):
    record = run(ChunkPolicy(lambda observation: chunk))
    if taken:
        assert record.outcome is Outcome.FAILURE
    else:
        assert record.error.kind == "action_shape"


def test_an_exception_of_the_policy_is_its_error_with_the_traceback():
    def act(observation):
        raise KeyError("cam_high")

    record = run(ChunkPolicy(act))
    assert (record.outcome, record.error.kind) == (Outcome.POLICY_ERROR, "exception")
    assert "KeyError: 'cam_high'" in record.error.message
    assert "in act" in record.error.traceback_tail


def test_an_exception_in_reset_is_the_policys_error():
    policy = ChunkPolicy(hold)
    policy.reset = lambda info: 1 / 0
    record = run(policy)
    assert record.error.kind == "exception"
    assert "in reset" in record.error.message
    assert record.policy_calls == 0


@pytest.mark.parametrize("kind", ["nan_state", "black_frame"])
def test_a_spoiled_observation_is_the_simulators_error(kind):
    world = FakeWorld(faults=(Fault(kind=kind, seed=100000, step=0),))
    with pytest.raises(SimulatorError) as caught:
        run(ChunkPolicy(hold), world=world)
    assert caught.value.kind == kind


def test_black_pictures_later_on_are_the_simulators_error():
    world = FakeWorld(faults=(Fault(kind="black_frame", seed=100000, step=10),))
    with pytest.raises(SimulatorError, match="the picture of head_camera, left_camera at step 10 has one colour only"):
        run(ChunkPolicy(hold, cameras=("head_camera", "left_camera")), world=world)


class OneEyed(FakeSimulator):
    """Its left camera sees nothing from a step on."""

    def __init__(self, since):
        super().__init__()
        self._since = since

    def observe(self, cameras):
        seen = super().observe(cameras)
        if self._steps >= self._since:
            seen.images["left_camera"][:] = 0
        return seen


def test_a_covered_wrist_camera_later_on_is_taken():
    policy = ChunkPolicy(hold, cameras=("head_camera", "left_camera"))
    assert run(policy, sim=OneEyed(10)).outcome is Outcome.FAILURE
    with pytest.raises(SimulatorError, match="the picture of left_camera at step 0"):
        run(policy, sim=OneEyed(0))


def test_a_simulator_error_is_raised_for_another_attempt():
    with pytest.raises(SimulatorError, match="broke at step 5"):
        run(ChunkPolicy(hold), world=FakeWorld(faults=(Fault(kind="exception", seed=100000, step=5),)))


def test_an_accepted_seed_that_is_unstable_here_is_recorded():
    record = run(ChunkPolicy(hold), world=FakeWorld(unstable=always))
    assert (record.outcome, record.error.kind) == (Outcome.SIM_ERROR, "seed_invalid")


class BatchingPolicy(ChunkPolicy):
    def __init__(self, act):
        super().__init__(act)
        self.batches = []

    def act_batch(self, observations):
        self.batches.append(len(observations))
        return [self._act(observation) for observation in observations]


def observation(session, state=HOME):
    return Observation(session=session, step=0, instruction="", state=state)


def test_a_batch_is_one_call_and_one_bad_row_spoils_no_other():
    policy = BatchingPolicy(hold)
    bad = HOME.copy()
    bad[2] = np.nan
    good, spoiled = decide_batch(policy, [observation("a"), observation("b", bad)])
    assert policy.batches == [2]
    assert np.array_equal(good.chunk, np.tile(HOME, (10, 1)))
    assert spoiled.error.kind == "action_nonfinite"


def test_an_exception_in_a_batch_is_pinned_to_its_session():
    def act(seen):
        if seen.session == "b":
            raise RuntimeError("only b")
        return hold(seen)

    good, spoiled = decide_batch(BatchingPolicy(act), [observation("a"), observation("b")])
    assert good.chunk is not None
    assert "only b" in spoiled.error.message


def test_bfloat16_tensors_are_refused_or_exact():
    import torch

    record = run(ChunkPolicy(lambda o: torch.zeros((2, 14), dtype=torch.float32) + torch.tensor(HOME)))
    assert record.outcome is Outcome.FAILURE
    refused = run(ChunkPolicy(lambda o: torch.zeros((2, 14), dtype=torch.bfloat16)))
    assert refused.error.kind == "action_shape"
