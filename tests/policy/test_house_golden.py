"""The checkpoint that comes with evalkit answers the golden observations as it did when it was trained."""

import pytest

from evalkit.core.locations import bundled
from evalkit.policy.golden import TOLERANCES, golden_moments, largest_difference, read_actions
from evalkit.policy.registry import load_adapter
from evalkit.policy.suspects import distance, episode_of, suspects

FOLDER = bundled("checkpoints") / "standin_clean50" / "step_30000"


@pytest.fixture(scope="module")
def policy():
    return load_adapter("house").load(FOLDER, device="cpu")


def answers(policy, rows):
    found = []
    for row in rows:
        policy.reset(episode_of(policy.spec, row))
        found.append(policy.act(row))
    return found


def test_it_gives_its_golden_actions_and_follows_the_expert(policy):
    moments = golden_moments(policy.spec)
    golden = read_actions(FOLDER / "golden_actions.json")
    chunks = answers(policy, [moment.observation for moment in moments])
    assert largest_difference(chunks, golden.chunks) <= TOLERANCES["cpu float32"]
    assert distance(chunks, [moment.then_state for moment in moments], "qpos") < 0.03


def test_red_and_blue_exchanged_is_found_with_a_trained_network(policy):
    from golden_kit import MixedUp, swapped_colours

    golden = read_actions(FOLDER / "golden_actions.json")
    picked = [1, 6]
    moments = [golden_moments(policy.spec)[index] for index in picked]
    mixed = MixedUp(policy, sent=swapped_colours)
    rows = [moment.observation for moment in moments]
    chunks = answers(mixed, rows)
    wanted = [golden.chunks[index] for index in picked]
    assert largest_difference(chunks, wanted) > 100 * TOLERANCES["cpu float32"]
    [found, *_] = suspects(mixed, rows, chunks, wanted, TOLERANCES["cpu float32"])
    assert found.what == "red and blue exchanged in its pictures"
    assert found.certain
