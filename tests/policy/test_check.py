"""``evalkit policy check``: each mix-up that turns 90 % into 0 % is named before a run."""

from dataclasses import replace

import golden_kit as kit
import numpy as np
import pytest

from evalkit.core.errors import UserError
from evalkit.policy.check import check_policy, golden_chunks
from evalkit.policy.contract import PolicySpec
from evalkit.policy.golden import (
    GoldenActions,
    golden_moments,
    golden_trajectory,
    observations_digest,
    read_actions,
    write_actions,
)


def found_in(policy, moments=None, **options):
    moments = golden_moments(policy.spec) if moments is None else moments
    return {finding.name: finding for finding in check_policy(policy, moments, **options)}


def golden_of(policy, moments=None, **changes):
    chunks = tuple(golden_chunks(policy, moments or golden_moments(policy.spec)))
    values = {"policy": "p", "observations": observations_digest(), "device": "cpu", "numbers": "float32"}
    return GoldenActions(**{**values, **changes}, chunks=chunks)


def test_golden_observations_are_real_and_small():
    moments = golden_moments(kit.Imitator().spec)
    assert len(moments) == 8
    assert len({moment.observation.instruction for moment in moments}) == 2
    for moment in moments:
        assert moment.then_state.shape == (16, 14)
        assert moment.then_endpose.shape == (16, 16)
        assert all(image.shape == (240, 320, 3) and image.std() > 10 for image in moment.observation.images.values())
        np.testing.assert_allclose(np.linalg.norm(moment.then_endpose[:, 3:7], axis=1), 1, atol=1e-5)
    assert golden_trajectory("ee").shape == (128, 16)
    other = replace(kit.Imitator().spec, cameras=(replace(kit.CAMERAS[0], height_px=480),))
    assert golden_moments(other) == []


@pytest.mark.parametrize("kind", ["qpos", "ee"])
def test_a_policy_that_does_what_the_expert_did_is_ready(kind):
    found = found_in(kit.Imitator(kind), golden=golden_of(kit.Imitator(kind)))
    assert all(finding.ok for finding in found.values())
    assert "mean distance 0 " in found["expert"].detail
    assert found["golden"].detail.startswith("largest difference 0 ")
    assert "same bits in another order" in found["repeat"].detail


def degrees(chunk, row):
    arms = [*range(6), *range(7, 13)]
    chunk[:, arms] = np.rad2deg(chunk[:, arms])
    return chunk


def turned(*columns):
    def answered(chunk, row):
        chunk[:, columns] = 1 - chunk[:, columns]
        return chunk

    return answered


def grippers_last(chunk, row):
    return chunk[:, [*range(6), *range(7, 13), 6, 13]].clip(-0.0, 1.0)


def differences(chunk, row):
    arms = [*range(6), *range(7, 13)]
    chunk[:, arms] -= row.state[arms]
    return chunk


def xyzw(chunk, row):
    for start in (3, 11):
        chunk[:, start : start + 4] = np.roll(chunk[:, start : start + 4], -1, axis=1)
    return chunk


SENT = {
    "red and blue exchanged in its pictures": ("qpos", kit.swapped_colours),
    "left and right wrist camera exchanged": ("qpos", kit.exchanged_wrists),
    "grippers turned round in its state": ("qpos", kit.state_with(kit.turned_grippers)),
    "left and right arm exchanged in its state": ("qpos", kit.state_with(kit.exchanged_arms)),
    "quaternions of its state in the order xyzw": ("ee", kit.xyzw_poses),
}
ANSWERED = {
    "grippers turned round in its actions": ("qpos", turned(6, 13)),
    "degrees made radians in its actions": ("qpos", degrees),
    "its actions added to the state": ("qpos", differences),
    "quaternions taken as xyzw in its actions": ("ee", xyzw),
    "left and right arm exchanged in its actions": ("ee", lambda chunk, row: np.roll(chunk, 8, axis=1)),
}


@pytest.mark.parametrize("mix_up", SENT)
def test_a_mix_up_of_what_a_policy_is_sent_is_named(mix_up):
    kind, sent = SENT[mix_up]
    policy = kit.MixedUp(kit.Imitator(kind), sent=sent)
    found = found_in(policy, golden=golden_of(kit.Imitator(kind)))
    assert not found["golden"].ok
    assert mix_up in found["golden"].detail
    assert not found["expert"].ok  # without golden actions, too
    assert mix_up in found["expert"].detail


@pytest.mark.parametrize("mix_up", ANSWERED)
def test_a_mix_up_of_what_a_policy_answers_is_named(mix_up):
    kind, answered = ANSWERED[mix_up]
    policy = kit.MixedUp(kit.Imitator(kind), answered=answered)
    found = found_in(policy, golden=golden_of(kit.Imitator(kind)))
    assert not found["golden"].ok
    assert mix_up in found["golden"].detail
    assert mix_up in found["expert"].detail


def test_joints_in_degrees_go_beyond_the_robots_limits():
    found = found_in(kit.MixedUp(kit.Imitator(), answered=degrees))
    assert not found["arms"].ok
    assert "degrees? (joints: degrees in the profile)" in found["arms"].detail


def test_statistics_of_another_robot_move_the_first_action_away():
    found = found_in(kit.MixedUp(kit.Imitator(), answered=lambda chunk, row: np.clip(chunk, 0, 1) - 0.0))
    assert not found["first action"].ok
    assert "whose statistics?" in found["first action"].detail


def test_a_policy_that_gets_a_state_of_another_width_is_off_with_its_own_words():
    def narrow(chunk, row):
        raise ValueError("mat1 and mat2 shapes cannot be multiplied (1x14 and 16x64)")

    found = found_in(kit.MixedUp(kit.Imitator(), answered=narrow))
    assert list(found) == ["contract"]
    assert found["contract"].detail == "ValueError: mat1 and mat2 shapes cannot be multiplied (1x14 and 16x64)"


@pytest.mark.parametrize(("closed", "opened"), [(-1, 1), (0, 255), (1, -1)])
def test_grippers_of_another_range_break_the_contract(closed, opened):
    def scaled(chunk, row):
        chunk[:, [6, 13]] = closed + (opened - closed) * chunk[:, [6, 13]]
        return chunk

    found = found_in(kit.MixedUp(kit.Imitator(), answered=scaled))
    assert not found["contract"].ok
    assert "the range is 0 (closed) to 1 (open)" in found["contract"].detail


def test_grippers_in_metres_are_noticed_though_they_are_in_range():
    def metres(chunk, row):
        chunk[:, [6, 13]] *= 0.04
        return chunk

    found = found_in(kit.MixedUp(kit.Imitator(), answered=metres))
    assert found["grippers"].note
    assert "from 0 to 0.04, hardly open where they were open: another unit (metres)?" in found["grippers"].detail


def test_policies_that_dont_look_or_dont_move_are_noticed():
    blind = kit.MixedUp(kit.Imitator(), answered=lambda chunk, row: np.full((16, 14), 0.5))
    found = found_in(blind)
    assert not found["motion"].ok
    assert "the same actions for 8 different observations" in found["motion"].detail
    assert "black pictures change nothing" in found["inputs"].detail
    still = kit.MixedUp(kit.Imitator(), answered=lambda chunk, row: np.tile(row.state, (16, 1)))
    assert "every action is the state it was shown" in found_in(still)["motion"].detail

    def one_joint(chunk, row):
        chunk[:, 2] = 0.75
        return chunk

    found = found_in(kit.MixedUp(kit.Imitator(), answered=one_joint))
    assert found["motion"].note
    assert "action dimension 2" in found["motion"].detail


def test_actions_that_depend_on_the_order_of_questions_are_off():
    class Counting(kit.Imitator):
        count = 0

        def reset(self, info):
            self.count = self.count + 1 if info.session.startswith(("again", "golden")) else 0

        def act(self, observation):
            return super().act(observation) + 1e-12 * self.count * (np.arange(14) == 0)

    assert not found_in(Counting())["repeat"].ok


def test_golden_actions_have_a_tolerance_for_where_they_were_computed(tmp_path):
    policy = kit.Imitator()
    golden = golden_of(policy)
    nearly = kit.MixedUp(policy, answered=lambda chunk, row: chunk * (1 + 1e-4))
    assert not found_in(nearly, golden=golden)["golden"].ok
    assert found_in(nearly, golden=golden, device="cuda")["golden"].ok
    assert found_in(nearly, golden=golden, numbers="bfloat16")["golden"].ok
    write_actions(tmp_path / "p.golden.json", golden)
    read = read_actions(tmp_path / "p.golden.json")
    assert found_in(policy, golden=read)["golden"].ok
    assert read_actions(tmp_path / "none.json") is None
    write_actions(tmp_path / "p.golden.json", replace(golden, observations="other"))
    with pytest.raises(UserError, match="answer other observations than these"):
        read_actions(tmp_path / "p.golden.json")
    (tmp_path / "p.golden.json").write_text("{")
    with pytest.raises(UserError, match="write them again with --write-golden"):
        read_actions(tmp_path / "p.golden.json")


def test_chunks_of_another_length_are_no_golden_actions():
    golden = golden_of(kit.Imitator())
    short = kit.MixedUp(kit.Imitator(), answered=lambda chunk, row: chunk[:8])
    short.spec = replace(short.spec, chunk_steps=8)
    assert "largest difference inf" in found_in(short, golden=golden)["golden"].detail


def test_a_spec_without_a_drive_of_its_own_is_asked_nothing():
    from evalkit.policy.registry import load_adapter

    assert isinstance(load_adapter("replay").load(None, device="cpu").spec, PolicySpec)
    assert [*found_in(load_adapter("replay").load(None, device="cpu"), [])] == ["contract"]
