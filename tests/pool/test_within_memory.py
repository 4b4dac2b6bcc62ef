import numpy as np
import pytest

from evalkit.core.errors import PolicyError, PolicyLostError
from evalkit.policy.conformance import example_episode, example_observations
from evalkit.policy.contract import BatchPolicy, CameraSpec, EndingPolicy, PolicySpec
from evalkit.pool.within_memory import OUT_OF_MEMORY, is_out_of_memory, within_memory


class OutOfMemoryError(RuntimeError):
    """As torch's is called."""


class Plain:
    def __init__(self, most=10**6, *, stateful=False):
        self.spec = PolicySpec(
            name="plain",
            cameras=(CameraSpec(name="head_camera"),),
            action_type="qpos",
            chunk_steps=1,
            execute_steps=1,
            needs_instruction=False,
            stateful=stateful,
        )
        self.most, self.sizes = most, []

    def reset(self, info):
        self._take(1)

    def act(self, observation):
        self._take(1)
        return observation.state[None]

    def close(self):
        pass

    def _take(self, size):
        self.sizes.append(size)
        if size > self.most:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


class Batched(Plain):
    def act_batch(self, observations):
        self._take(len(observations))
        return [observation.state[None] for observation in observations]


class Ending(Plain):
    def end(self, session, success):
        self.sizes.append((session, success))


class Both(Batched, Ending):
    pass


def observations(number):
    [one, *_] = example_observations(Plain().spec, session="s", seed=1)
    return [type(one)(**{**vars(one), "state": one.state + step, "step": step}) for step in range(number)]


def same(chunks, rows):
    return len(chunks) == len(rows) and all(
        np.array_equal(chunk[0], row.state) for chunk, row in zip(chunks, rows, strict=True)
    )


@pytest.mark.parametrize(("kind", "batches", "ends"), [(Plain, 0, 0), (Batched, 1, 0), (Ending, 0, 1), (Both, 1, 1)])
def test_the_wrapper_is_of_the_same_kind(kind, batches, ends):
    wrapped = within_memory(kind(), None)
    assert isinstance(wrapped, BatchPolicy) == bool(batches)
    assert isinstance(wrapped, EndingPolicy) == bool(ends)


def test_the_end_of_an_episode_is_passed_on():
    policy = Both()
    wrapped = within_memory(policy, None)
    assert isinstance(wrapped, EndingPolicy)
    wrapped.end("s", True)
    assert policy.sizes == [("s", True)]


def test_a_batch_is_cut_to_the_limit():
    policy = Batched()
    rows = observations(7)
    assert same(within_memory(policy, 3).act_batch(rows), rows)
    assert policy.sizes == [3, 3, 1]


def test_memory_that_is_not_enough_halves_the_batches_and_that_is_learnt():
    policy = Batched(most=3)
    wrapped = within_memory(policy, None)
    rows = observations(10)
    assert same(wrapped.act_batch(rows), rows)
    assert policy.sizes == [10, 5, 2, 2, 2, 2, 2]
    assert (wrapped.max_batch, wrapped.times_out) == (2, 2)
    policy.sizes.clear()
    wrapped.act_batch(rows)
    assert max(policy.sizes) == 2


def test_the_episodes_of_a_stateful_policy_start_again_with_smaller_batches():
    policy = Batched(most=3, stateful=True)
    wrapped = within_memory(policy, None)
    with pytest.raises(PolicyLostError, match="ran out of memory with 8 observations: CUDA out of memory") as caught:
        wrapped.act_batch(observations(8))
    assert caught.value.kind == OUT_OF_MEMORY
    assert policy.sizes == [8]
    assert wrapped.max_batch == 4


@pytest.mark.parametrize("call", ["reset", "act", "act_batch"])
def test_no_memory_for_a_single_observation_is_nobodys_policy_error(call):
    wrapped = within_memory(Batched(most=0), None)
    argument = {"reset": example_episode(wrapped.spec, session="s", seed=1), "act": observations(1)[0]}
    with pytest.raises(PolicyLostError, match="ran out of memory with 1 observation:") as caught:
        getattr(wrapped, call)(argument.get(call, observations(1)))
    assert caught.value.kind == OUT_OF_MEMORY


def test_a_wrong_number_of_chunks_is_seen_in_every_piece():
    class Short(Batched):
        def act_batch(self, observations):
            return super().act_batch(observations)[:1]

    with pytest.raises(PolicyError, match="gave 1 chunks for a batch of 2"):
        within_memory(Short(), 2).act_batch(observations(4))


def test_other_errors_pass():
    class Broken(Batched):
        def act_batch(self, observations):
            raise ValueError("shape")

    with pytest.raises(ValueError, match="shape"):
        within_memory(Broken(), None).act_batch(observations(2))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OutOfMemoryError("anything"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), True),
        (PolicyError("exception", "OutOfMemoryError: CUDA out of memory. Tried"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (MemoryError("out of memory"), False),
        (ValueError("out of memory of my ancestors"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, expected):
    assert is_out_of_memory(error) is expected
