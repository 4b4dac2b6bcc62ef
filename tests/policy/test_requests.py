"""What a policy is sent and what is taken from it: pictures, fields, profiles, chunks."""

import copy

import numpy as np
import pytest
from policy_folders import settings_of

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.chunk import check_chunk
from evalkit.policy.conformance import example_episode, example_observations
from evalkit.policy.converted import ConvertedPolicy, as_chunk
from evalkit.policy.pictures import read_form
from evalkit.policy.profile import load_profile, profile_names
from evalkit.policy.registry import load_form

RED = np.zeros((4, 8, 3), np.uint8)
RED[..., 0] = 250
RED[:, :4, 1] = 100


def form(**values):
    return read_form(values, "request x").apply(RED)


def test_colour_order_axes_and_range():
    assert form()[0, 0].tolist() == [250, 100, 0]
    assert form(colour="bgr")[0, 0].tolist() == [0, 100, 250]
    assert form(layout="chw").shape == (3, 4, 8)
    assert form(layout="chw")[:, 0, 0].tolist() == [250, 100, 0]
    assert form(layout="chw", colour="bgr")[:, 0, 0].tolist() == [0, 100, 250]
    np.testing.assert_allclose(form(range="0..1")[0, 0], [250 / 255, 100 / 255, 0], atol=1e-7)
    np.testing.assert_allclose(form(range="-1..1")[0, 0], [250 / 127.5 - 1, 100 / 127.5 - 1, -1], atol=1e-6)
    assert form(range="0..1").dtype == np.float32
    assert form(colour="bgr").flags.c_contiguous


def test_stretching_fills_and_padding_keeps_proportions():
    stretched = form(size_px=[8, 8], fit="stretch", filter="nearest")
    assert stretched.shape == (8, 8, 3)
    assert (stretched[..., 0] == 250).all()
    padded = form(size_px=[8, 8], fit="pad", filter="nearest")
    assert (padded[[0, 1, 6, 7]] == 0).all()
    np.testing.assert_array_equal(padded[2:6], RED)
    tall = form(size_px=[4, 4], fit="pad", filter="area")
    assert (tall[[0, 3]] == 0).all()
    assert (tall[1:3, :, 0] == 250).all()
    assert form(size_px=[4, 8], fit="pad", filter="area") is not None
    np.testing.assert_array_equal(form(size_px=[4, 8], fit="pad", filter="area"), RED)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"color": "bgr"}, "has no setting 'color'"),
        ({"colour": "brg"}, "colour is 'brg': use rgb or bgr"),
        ({"size_px": [224, 224]}, "doesn't say fit: stretch or pad"),
        ({"size_px": [224, 224], "fit": "pad"}, "doesn't say filter"),
        ({"size_px": 224, "fit": "pad", "filter": "area"}, r"give \[height, width\]"),
    ],
)
def test_a_picture_is_never_guessed(values, message):
    with pytest.raises(UserError, match=message):
        read_form(values, "request x")


PROFILE = {
    "robot": {
        "actions": "qpos", "cameras": {"head_camera": [4, 4]}, "chunk_steps": 4, "execute_steps": 2,
        "needs_instruction": True, "stateful": False,
    },
    "request": {
        "image": {"picture": "head_camera"},
        "nested": {
            "state": {"vector": "qpos", "as": [], "take": ["left_gripper", "right_gripper"], "dtype": "float64"}
        },
        "text": {"instruction": "list", "on_reset": "<new> "},
        "step": {"number": "step"}, "call": {"number": "call"}, "fixed": {"value": {"cfg": 3}},
    },
    "answer": {"key": "actions", "as": []},
}  # fmt: skip


def profile(change=lambda values: None, **options):
    values = copy.deepcopy(PROFILE)
    change(values)
    from pathlib import Path

    return load_profile(values, name="p", folder=Path(), **options)


class Echo:
    """A channel that answers what it is told to and keeps what it is sent."""

    def __init__(self, answer):
        self.answer, self.requests = answer, []

    def reset(self, info):
        pass

    def infer(self, session, request):
        self.requests.append(request)
        return self.answer

    def close(self):
        pass


def ask(answer, change=lambda values: None, count=1):
    policy = ConvertedPolicy(profile(change), Echo(answer))
    policy.reset(example_episode(policy.spec, session="s", seed=1))
    rows = example_observations(policy.spec, session="s", seed=1, count=count)
    return [policy.act(row) for row in rows], policy._channel.requests, rows


def test_a_request_is_what_the_profile_says():
    _, requests, rows = ask({"actions": np.full((4, 14), 0.5)}, count=2)
    first, second = requests
    np.testing.assert_array_equal(first["image"], rows[0].images["head_camera"])
    np.testing.assert_array_equal(first["nested"]["state"], rows[0].state[[6, 13]])
    assert first["nested"]["state"].dtype == np.float64
    assert (first["text"], second["text"]) == (["<new> Press the bell."], ["Press the bell."])
    assert [(r["step"], r["call"]) for r in requests] == [(0, 0), (2, 1)]
    assert first["fixed"] == {"cfg": 3}


def test_a_camera_that_isnt_delivered_is_named():
    policy = ConvertedPolicy(profile(), Echo({"actions": np.full((4, 14), 0.5)}))
    policy.reset(example_episode(policy.spec, session="s", seed=1))
    row = example_observations(policy.spec, session="s", seed=1, count=1)[0]
    row.images.clear()
    with pytest.raises(PolicyError, match="needs head_camera, which wasn't delivered"):
        policy.act(row)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ({"action": 1}, "answer", "answered without 'actions'; its answer has action"),
        ({"actions": np.zeros((0, 14))}, "action_shape", r"shape \(0, 14\)"),
        ({"actions": np.zeros((3, 14))}, "action_shape", "returned 3 actions; its profile says chunk_steps: 4"),
        ({"actions": np.zeros((4, 16))}, "action_shape", r"shape \(4, 16\); its declared representation has 14"),
        ({"actions": "up"}, "action_shape", "returned str, not actions"),
        ({"actions": np.zeros((2, 4, 14))}, "action_shape", r"shape \(2, 4, 14\)"),
    ],
)
def test_an_answer_of_another_form_is_refused_with_its_shape(answer, kind, message):
    with pytest.raises(PolicyError, match=message) as caught:
        ask(answer)
    assert caught.value.kind == kind


def test_forms_of_chunks_that_are_taken_mean_the_same():
    torch = pytest.importorskip("torch")
    rows = np.linspace(0, 1, 56).reshape(4, 14).astype(np.float32)
    for value in (rows, rows[None], list(rows), rows.tolist(), torch.from_numpy(rows)):
        np.testing.assert_array_equal(as_chunk(value, "p"), rows.astype(np.float64))
    np.testing.assert_array_equal(as_chunk(rows[0], "p"), rows[:1].astype(np.float64))


@pytest.mark.parametrize(
    ("low", "high", "fine"),
    [(-1, 1, False), (0, 255, False), (-0.001, 1.002, True), (0, 1, True), (0, 0.04, True)],
)
def test_gripper_ranges_are_noticed_and_joints_are_free(low, high, fine):
    actions = np.full((4, 14), 3.2)
    actions[:, [6, 13]] = [[low, high]] * 4
    spec = profile().spec
    if fine:
        assert check_chunk(actions, spec).shape == (4, 14)
    else:
        with pytest.raises(
            PolicyError, match=r"commanded gripper .* \(dimension (6|13), 100% of this chunk's"
        ) as caught:
            check_chunk(actions, spec)
        assert caught.value.kind == "action_gripper_range"


def put(section, key, value):
    return lambda values: values[section].update({key: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("request", "x", {"vector": "qpos"}), "lacks as"),
        (put("request", "x", {"vector": "qpos", "as": [], "take": ["left_hand"]}), "takes 'left_hand'; the vector has"),
        (put("request", "x", {"vector": "qpos", "as": [], "dtype": "int8"}), "use float32 or float64"),
        (put("request", "x", {"picture": "left_camera"}), "sends left_camera, which isn't among robot.cameras"),
        (put("request", "x", {"picture": "head_camera", "value": 1}), "names two sources: picture and value"),
        (put("request", "x", {"number": "time"}), "use step, seed, call, first"),
        (put("request", "x", {"instruction": "words"}), "use text or list"),
        (put("request", "x", 3), "give one of picture, pictures"),
        (put("robot", "execute_steps", 9), "execute_steps 9 exceeds chunk_steps 4"),
        (put("robot", "cameras", {"top": [4, 4]}), "names are head_camera"),
        (put("robot", "actions", "joint"), "use qpos or ee"),
        (put("robot", "fps", 30), "robot has no setting 'fps'"),
        (put("answer", "steps", 3), "answer takes key"),
        (lambda values: values.pop("answer"), "lacks section answer"),
        (lambda values: values.update(extra=1), "has no section 'extra'"),
        (put("answer", "as", [{"base_frame": {"ask": "base"}}]), "uses ask: base, which isn't among its asks"),
    ],
)
def test_a_profile_that_doesnt_say_enough_is_refused(change, message):
    with pytest.raises(UserError, match=message):
        profile(change)


def test_profiles_that_come_with_evalkit_are_complete(tmp_path):
    assert set(profile_names()) >= {"evalkit_openpi", "lingbot_va", "pi0_aloha", "tau0_wm", "x_wam"}
    with pytest.raises(UserError, match="unknown profile 'x_vam': did you mean x_wam"):
        load_profile("x_vam", name="p", folder=tmp_path)


@pytest.mark.parametrize("adapter", ["torch_module", "lerobot"])
def test_a_model_with_a_state_holds_one_episode(tmp_path, adapter):
    robot = {**PROFILE["robot"], "stateful": True}
    code = {"code": ".", "factory": "net:Net"} if adapter == "torch_module" else {"checkpoint": "step_1"}
    policy = {"adapter": adapter, "profile": {**PROFILE, "robot": robot}, **code}
    with pytest.raises(UserError, match=r"isn't told which episode it is asked about: say one_at_a_time: true"):
        load_form(adapter).spec(settings_of(tmp_path, **policy))
    robot["one_at_a_time"] = True
    assert load_form(adapter).spec(settings_of(tmp_path, **policy)).stateful
