import json
import subprocess

import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from trial_kit import HORIZON, ChunkPolicy, follow, hold, run

from evalkit.core.errors import SimulatorError
from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.core.rng import stream_seed
from evalkit.report.remarks import remarks as worth_a_look
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault
from evalkit.sim.fake.world import always


def test_a_policy_that_follows_succeeds():
    policy = ChunkPolicy(follow)
    record = run(policy)
    assert record.outcome is Outcome.SUCCESS
    assert (record.steps, record.success_step, record.policy_calls) == (3, 3, 1)
    assert record.timings.wall_s >= record.timings.inference_s > 0
    assert record.state_digest
    [info] = policy.episodes
    assert info.policy_seed == stream_seed(100000, "policy", "click_bell", 1)
    assert (info.session, info.horizon_steps, info.demonstration) == ("s-1", HORIZON, None)


def test_a_policy_that_holds_fails_at_the_limit():
    policy = ChunkPolicy(hold)
    record = run(policy, execute_steps=7)
    assert record.outcome is Outcome.FAILURE
    assert (record.steps, record.policy_calls, record.success_step) == (HORIZON, 6, None)
    assert [seen.step for seen in policy.seen] == [0, 7, 14, 21, 28, 35]
    assert record.planner_failures == 2 * HORIZON


def opens_to(widest):
    def act(observation):
        actions = np.tile(observation.state, (10, 1))
        actions[:, [6, 13]] = np.linspace(0, widest, 20).reshape(10, 2)
        return actions

    return act


@pytest.mark.parametrize(
    ("act", "remarks"), [(opens_to(0.04), ("grippers_hardly_open",)), (opens_to(1.0), ()), (hold, ())]
)
def test_grippers_in_metres_are_remarked_on_and_change_nothing(act, remarks):
    record = run(ChunkPolicy(act))
    assert (record.outcome, record.steps) == (Outcome.FAILURE, HORIZON)
    assert record.remarks == remarks
    assert TrialRecord.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert ("remarks" in record.to_json()) == bool(remarks)
    said = worth_a_look([record, record])
    assert said == [] if not remarks else said[0].startswith("in none of 2 trials did the policy command a gripper")
    assert worth_a_look([record, run(ChunkPolicy(hold))]) == []


def test_a_long_chunk_executes_no_more_than_the_limit():
    record = run(ChunkPolicy(lambda o: np.tile(o.state, (50, 1)), chunk_steps=50), execute_steps=33)
    assert (record.steps, record.policy_calls) == (HORIZON, 2)


def test_observation_holds_only_what_the_policy_declares():
    policy = ChunkPolicy(hold, cameras=("left_camera", "right_camera"))
    run(policy)
    assert set(policy.seen[0].images) == {"left_camera", "right_camera"}
    assert policy.seen[0].endpose.shape == (16,)
    first, second = policy.seen[:2]
    assert not np.shares_memory(first.images["left_camera"], second.images["left_camera"])
    assert not np.shares_memory(first.state, second.state)


def test_ee_policies_are_shown_the_end_poses():
    def act(observation):
        return np.tile(observation.endpose, (10, 1))

    policy = ChunkPolicy(act, action_type="ee")
    record = run(policy, action_type="ee")
    assert record.outcome is Outcome.FAILURE
    assert policy.seen[0].endpose.shape == (16,)


def test_expert_drive():
    policy = ChunkPolicy(hold, drive="expert")
    record = run(policy)
    assert (record.outcome, record.policy_calls, record.steps) == (Outcome.SUCCESS, 0, 0)
    assert policy.episodes == []
    assert run(policy, world=FakeWorld(unsolvable=always)).outcome is Outcome.FAILURE


def test_demonstration_drive_replays_the_expert_in_the_same_scene():
    policy = ChunkPolicy(None, drive="demonstration", chunk_steps=4)
    policy._act = lambda o: policy.episodes[0].demonstration[o.step : o.step + 4]
    record = run(policy, execute_steps=4)
    assert record.outcome is Outcome.SUCCESS
    assert policy.episodes[0].demonstration.shape == (8, 14)
    assert policy.seen[0].state[0] == 0.0  # the scene was built anew after the expert


def test_two_runs_give_the_same_record_apart_from_times():
    sim = FakeSimulator()
    first = run(ChunkPolicy(hold), sim=sim)
    run(ChunkPolicy(follow), seed=100007, sim=sim)
    second = run(ChunkPolicy(hold), sim=sim)
    assert (first.outcome, first.steps, first.state_digest) == (second.outcome, second.steps, second.state_digest)


def test_video_shows_each_observation(tmp_path):
    policy = ChunkPolicy(hold, cameras=("left_camera",))
    record = run(policy, media_root=tmp_path, video="media/a/b.mp4")
    assert record.media == ("media/a/b.mp4",)
    assert [path.name for path in (tmp_path / "media/a").iterdir()] == ["b.mp4"]
    decode = [
        get_ffmpeg_exe(),
        "-v",
        "error",
        "-i",
        tmp_path / "media/a/b.mp4",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    pixels = subprocess.run(decode, capture_output=True, check=True).stdout
    frames = np.frombuffer(pixels, np.uint8).reshape(-1, 240, 320, 3)
    assert len(frames) == 5  # four decisions and the end
    assert frames.std() > 10
    assert set(policy.seen[0].images) == {"left_camera"}


def test_a_failing_video_writer_changes_nothing(tmp_path):
    (tmp_path / "media").write_text("a file where a folder should be")
    record = run(ChunkPolicy(hold), media_root=tmp_path, video="media/a.mp4")
    plain = run(ChunkPolicy(hold))
    assert record.media == ()
    assert (record.outcome, record.state_digest) == (plain.outcome, plain.state_digest)


def test_no_video_is_left_of_a_trial_that_breaks(tmp_path):
    world = FakeWorld(faults=(Fault(kind="exception", seed=100000, step=15),))
    with pytest.raises(SimulatorError):
        run(ChunkPolicy(hold), world=world, media_root=tmp_path, video="media/a.mp4")
    assert list((tmp_path / "media").iterdir()) == []
