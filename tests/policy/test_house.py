"""The house policy's parts at full size, untrained."""

import sys

import numpy as np
import pytest
import torch

from evalkit.core.errors import PolicyError
from evalkit.core.rng import stream
from evalkit.policy.checkpoint import spec_from_json
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.registry import load_training

RECIPE = load_training("house")
HOUSE = sys.modules["evalkit_policies.house"]
NETWORK, LOSS, PREPROCESSING, TRAINING = (
    sys.modules[f"evalkit_policies.house.{name}"] for name in ("network", "loss", "preprocessing", "training")
)


def make_policy(device="cpu"):
    """Full size, weights drawn at random, so that every input reaches the output."""
    states = stream(0, "states").normal(0, 0.5, (40, 14))
    normalisation = PREPROCESSING.Normalisation.compute(states, [states + 0.01 * k for k in range(32)], "d" * 64)
    torch.manual_seed(0)
    network = NETWORK.HouseNetwork(NETWORK.NetworkConfig())
    with torch.no_grad():
        for parameter in network.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.02)
    trainable = TRAINING.HouseTrainable(TRAINING.HouseSettings(), network, normalisation)
    spec = spec_from_json(trainable.policy_file()["spec"])
    return HOUSE.HousePolicy(spec, network.eval().to(device), normalisation, HOUSE.HouseOptions())


@pytest.fixture(scope="module")
def policy():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield make_policy()
    torch.set_num_threads(before)


def test_size_fits_eight_million_parameters_and_sixteen_mebibytes():
    count = NETWORK.parameter_count(NETWORK.HouseNetwork(NETWORK.NetworkConfig()))
    assert 4_000_000 < count <= 8_000_000
    assert 2 * count < 15.5 * 2**20, "half-precision weights, with policy.json and card, stay below 16 MiB"


@pytest.mark.parametrize("device", ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def test_conforms(policy, device):
    assert violations(make_policy(device)) == []


def decide(policy, **changes):
    from dataclasses import replace

    seed = changes.pop("policy_seed", 1)
    episode = example_episode(policy.spec, session="s", seed=1)
    policy.reset(replace(episode, policy_seed=seed))
    observation = example_observations(policy.spec, session="s", seed=1, count=1)[0]
    return policy.act(replace(observation, **changes))


def test_every_input_matters(policy):
    plain = decide(policy)
    observation = example_observations(policy.spec, session="s", seed=1, count=1)[0]
    changes = [
        {"step": 16},
        {"policy_seed": 2},
        {"instruction": "Shake the bottle."},
        {"state": observation.state + 0.1},
    ]
    changes += [
        {"images": {**observation.images, camera: 255 - picture}} for camera, picture in observation.images.items()
    ]
    for change in changes:
        assert not np.array_equal(decide(policy, **change), plain), change
    assert np.array_equal(decide(policy), plain)


def test_grippers_stay_within_their_range(policy):
    for step in range(4):
        chunk = decide(policy, step=step)
        assert chunk[:, [6, 13]].min() >= 0
        assert chunk[:, [6, 13]].max() <= 1


def test_a_missing_camera_and_an_unknown_session_are_policy_errors(policy):
    with pytest.raises(PolicyError, match="needs camera head_camera"):
        decide(policy, images={})
    with pytest.raises(PolicyError, match="'nobody' before its reset"):
        decide(policy, session="nobody")


def test_encoding_once_equals_the_training_path():
    torch.manual_seed(0)
    network = NETWORK.HouseNetwork(NETWORK.NetworkConfig(encoder_layers=1, decoder_layers=2)).eval()
    torch.nn.init.normal_(network.action_out.weight, std=0.05)
    images, state, text = torch.randn(2, 3, 3, 96, 128), torch.randn(2, 14), torch.randint(0, 2048, (2, 320))
    actions, time = torch.randn(2, 32, 14), torch.tensor([0.1, 0.9])
    with torch.inference_mode():
        whole = network(images, state, text, actions, time)
        parts = network.velocity(actions, time, network.encode(images, state, text))
    assert torch.equal(whole, parts)
    assert whole.shape == (2, 32, 14)
    assert not torch.equal(whole[0], whole[1])


def test_integration_follows_a_known_field_and_loss_is_zero_on_it():
    noise, target = torch.randn(3, 4, 2), torch.randn(3, 4, 2)
    field = lambda x, time: target - noise  # noqa: E731
    assert torch.allclose(LOSS.integrate(field, noise, 5), target, atol=1e-5)
    assert LOSS.flow_matching_loss(field, target, noise, torch.rand(3)) < 1e-10
    times = LOSS.draw_times(torch.linspace(0, 1, 1001))
    assert times.min() == 0
    assert times.max() == 1
    assert times.mean() == pytest.approx(0.4, abs=0.01), "mean of 1 - Beta(1.5, 1)"


def test_text_features_fade_instead_of_vanishing():
    def overlap(first, second):
        a, b = (set(PREPROCESSING.text_features(text, 2048).tolist()) - {0} for text in (first, second))
        return len(a & b) / len(a | b)

    assert overlap("Press the bell!", "press   the BELL") == 1
    assert overlap("press the bell", "press the bells") > overlap("press the bell", "press the hammer") > 0
    assert overlap("grabbing", "grabbed") > 0.2
    assert not PREPROCESSING.text_features("", 2048).any()
    assert PREPROCESSING.text_features("word " * 9 + "x" * 2000, 2048).shape == (PREPROCESSING.TEXT_FEATURES,)
    assert PREPROCESSING.text_features("press the bell", 2048)[:3].tolist() == [
        __import__("zlib").crc32(f"w {word}".encode()) % 2047 + 1 for word in ("press", "the", "bell")
    ]


def test_normalisation_round_trips():
    random = stream(3, "normalisation")
    states = random.normal(0, 1, (50, 14))
    targets = [states + random.normal(0, 0.1 * (k + 1), states.shape) for k in range(4)]
    normalisation = PREPROCESSING.Normalisation.compute(states, targets, "d")
    again = PREPROCESSING.Normalisation.from_json(normalisation.to_json())
    assert np.array_equal(again.action_std, normalisation.action_std)
    deltas = np.stack([target[0] for target in targets]) - states[0] * PREPROCESSING.ARM_MASK
    normalised = ((deltas - normalisation.action_mean) / normalisation.action_std).astype(np.float32)
    back = normalisation.actions(normalised, states[0])
    arms = PREPROCESSING.ARM_MASK.astype(bool)
    assert np.allclose(back[:, arms], np.stack([target[0] for target in targets])[:, arms], atol=1e-6)
    assert np.allclose(normalisation.action_std[:, 0], [0.1, 0.2, 0.3, 0.4], rtol=0.3)
    still = PREPROCESSING.Normalisation.compute(states * 0, [states * 0], "d")
    assert still.action_std.min() == 0.005


def test_resize_averages_areas():
    image = np.zeros((240, 320, 3), np.uint8)
    image[:, 160:] = (10, 20, 30)
    small = PREPROCESSING.resize_image(image, 96, 128)
    assert small.shape == (96, 128, 3)
    assert (small[:, :64] == 0).all()
    assert (small[:, 64:] == (10, 20, 30)).all()


def test_augmentation_shifts_each_camera_by_whole_pixels_and_can_be_off():
    images = torch.randint(0, 256, (4, 3, 24, 40, 3), dtype=torch.uint8)
    off = TRAINING.Augmentation(shift_fraction=0, brightness=0, contrast=0, tint=0)
    generator = torch.Generator().manual_seed(0)
    plain = TRAINING.augment_images(images, off, generator)
    assert torch.allclose(plain, images.permute(0, 1, 4, 2, 3) / 127.5 - 1)
    shift = TRAINING.Augmentation(shift_fraction=0.05, brightness=0, contrast=0, tint=0)
    moved = TRAINING.augment_images(images, shift, generator)
    found = set()
    for sample in range(4):
        for camera in range(3):
            for dy in range(-2, 3):
                for dx in range(-2, 3):
                    inner = plain[sample, camera, :, 2 + dy : 22 + dy, 2 + dx : 38 + dx]
                    if torch.equal(moved[sample, camera, :, 2:22, 2:38], inner):
                        found.add((sample, camera, dy, dx))
    assert len({entry[:2] for entry in found}) == 12
    assert len({entry[2:] for entry in found}) > 4
    jittered = TRAINING.augment_images(images, TRAINING.Augmentation(), generator)
    assert 0 < (jittered.mean() - plain.mean()).abs() < 0.3
