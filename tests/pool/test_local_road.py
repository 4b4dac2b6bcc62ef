"""The short way to a policy server: what arrives is what was sent, and every way it can break is named."""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time

import numpy as np
import pytest
from pool_kit import Make, Queue50

from evalkit.core.errors import HarnessError, PolicyLostError
from evalkit.policy.contract import CameraSpec, EpisodeInfo, Observation, PolicySpec
from evalkit.pool import local_road, policy_desk
from evalkit.pool.local_caller import LocalCaller
from evalkit.pool.local_road import Line, LocalAddress, RoadClosedError
from evalkit.pool.policy_desk import PolicyDesk
from evalkit.pool.within_memory import OUT_OF_MEMORY


def look(session="a", step=0, images=None):
    return Observation(session=session, step=step, instruction="", state=np.zeros(14), images=images or {})


def begin(session="a"):
    return EpisodeInfo(session=session, instruction="move joint 0 to 0.5 rad", policy_seed=1, horizon_steps=9)


class Album:
    """Keeps every picture it is shown, as a policy with a memory does, and answers with the sum of the last ones."""

    spec = PolicySpec(
        name="album",
        cameras=(CameraSpec(name="head_camera"),),
        action_type="qpos",
        chunk_steps=1,
        execute_steps=1,
        needs_instruction=False,
        stateful=True,
    )

    def __init__(self):
        self.seen, self.sizes, self.gate = [], [], threading.Event()
        self.gate.set()

    def reset(self, info):
        pass

    def act(self, observation):
        self.gate.wait(10)
        self.seen.append(observation.images)
        if observation.instruction == "lose it":
            raise PolicyLostError("policy_crash", "gone", signal=11)
        if observation.instruction == "too much":
            raise PolicyLostError(OUT_OF_MEMORY, "no memory left")
        total = sum(int(image.sum(dtype=np.int64)) for image in observation.images.values())
        return np.array([[total / 1e9] + [0.0] * 13])

    def act_batch(self, observations):
        self.sizes.append(len(observations))
        return [self.act(observation) for observation in observations]

    def close(self):
        pass


@pytest.fixture
def album():
    policy = Album()
    desk = PolicyDesk(lambda: policy)
    made = []

    def call(limit_s=10.0):
        made.append(LocalCaller(policy.spec, desk.address, limit_s))
        return made[-1]

    yield policy, desk, call
    for caller in made:
        caller.close()


def test_pictures_of_any_size_arrive_and_stay_as_they_were(album):
    policy, _, call = album
    caller, random = call(), np.random.default_rng(3)
    shapes = [(4, 5, 3), (240, 320, 3), (7, 3, 3), (480, 640, 3)]  # smaller, larger, smaller, larger memory
    sent = []
    for shape in shapes:
        images = {name: random.integers(0, 256, shape, dtype=np.uint8) for name in ("head_camera", "left_camera")}
        sent.append({name: image.copy() for name, image in images.items()})
        decision = caller.ask("act", look(images=images))
        total = sum(int(image.sum(dtype=np.int64)) for image in images.values())
        assert decision.chunk[0, 0] == total / 1e9
    for kept, original in zip(policy.seen, sent, strict=True):  # nothing overwrote what the policy kept
        assert kept.keys() == original.keys()
        for name, image in kept.items():
            assert np.array_equal(image, original[name])
            assert image.flags.owndata
            assert image.flags.writeable


def test_pictures_that_lie_otherwise_in_memory_arrive_as_they_look(album):
    policy, _, call = album
    image = np.arange(240 * 320 * 3, dtype=np.uint8).reshape(240, 320, 3)
    call().ask("act", look(images={"head_camera": image[::-1, ::2]}))
    assert np.array_equal(policy.seen[0]["head_camera"], image[::-1, ::2])


def test_what_waits_while_the_policy_is_busy_is_one_batch(album):
    policy, desk, call = album
    policy.gate.clear()
    callers = [call() for _ in range(5)]
    answers = {}

    def ask(index):
        answers[index] = callers[index].ask("act", look(session=str(index), images={"a": np.full((2, 2, 3), index)}))

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(5)]
    threads[0].start()
    time.sleep(0.2)  # the first is in the policy's hands
    through_ray = desk.ask("act", look(session="ray"))
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.3)
    policy.gate.set()
    for thread in threads:
        thread.join()
    assert desk.batch_sizes == {1: 1, 5: 1}
    assert {index: round(answers[index].chunk[0, 0] * 1e9) for index in answers} == {n: 12 * n for n in range(5)}
    assert through_ray.result(5).chunk is not None


def test_no_batch_is_larger_than_the_policy_allows(album):
    policy, desk, _ = album
    policy.max_batch = 2
    policy.gate.clear()
    waiting = [desk.ask("act", look(session=str(index))) for index in range(7)]
    time.sleep(0.2)
    policy.gate.set()
    assert all(answer.result(5).chunk is not None for answer in waiting)
    assert max(desk.batch_sizes) <= 2
    assert sum(size * number for size, number in desk.batch_sizes.items()) == 7


def test_a_loss_is_told_to_everybody_until_the_server_is_replaced(album):
    _, desk, call = album
    caller = call()
    with pytest.raises(PolicyLostError) as caught:
        caller.ask("act", Observation(session="a", step=0, instruction="lose it", state=np.zeros(14)))
    assert (caught.value.kind, caught.value.signal, str(caught.value)) == ("policy_crash", 11, "gone")
    with pytest.raises(PolicyLostError, match="gone"):
        caller.ask("reset", begin())
    with pytest.raises(PolicyLostError, match="gone"):
        desk.ask("act", look()).result(5)
    assert caller.ask("end", ("a", None)) is None  # the end of an episode is no question


def test_want_of_memory_is_told_to_those_who_asked_and_forgotten(album):
    _, _, call = album
    caller = call()
    with pytest.raises(PolicyLostError, match="no memory left"):
        caller.ask("act", Observation(session="a", step=0, instruction="too much", state=np.zeros(14)))
    assert caller.ask("act", look()).chunk is not None


def test_a_policy_that_hangs_is_late(album):
    policy, _, call = album
    policy.gate.clear()
    with pytest.raises(PolicyLostError, match=r"album gave no answer to act within 0\.3 s") as caught:
        call(limit_s=0.3).ask("act", look())
    assert caught.value.kind == "policy_timeout"
    policy.gate.set()
    assert call().ask("act", look()).chunk is not None  # the answer nobody waited for harms nobody


def test_callers_that_come_and_go_leave_nothing_open(album):
    _, _, call = album
    call().ask("act", look(images={"head_camera": np.zeros((240, 320, 3), np.uint8)}))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        caller = call()
        caller.ask("act", look(images={"head_camera": np.zeros((240, 320, 3), np.uint8)}))
        caller.close()
    call().ask("act", look())
    assert len(os.listdir("/proc/self/fd")) <= before + 6


def test_a_message_cut_in_the_middle_drops_its_sender_alone(album, monkeypatch):
    monkeypatch.setattr(policy_desk, "STALLED_S", 0.3)
    _, desk, call = album
    bad = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bad.connect(desk.address.name)
    bad.send(b"\x40\x00\x00")
    assert call().ask("act", look()).chunk is not None
    bad.settimeout(5)
    assert bad.recv(1) == b""  # hung up on
    bad.close()


def test_other_users_are_refused_by_both_ends(album, monkeypatch):
    _, _, call = album
    monkeypatch.setattr(policy_desk, "is_own_user", lambda connection: False)
    with pytest.raises(RoadClosedError):
        call()
    monkeypatch.setattr(local_road, "is_own_user", lambda connection: False)
    with pytest.raises(RoadClosedError, match="another user"):
        call()


def test_pictures_in_memory_that_was_never_handed_over_are_no_message():
    ours, theirs = socket.socketpair()
    data = pickle.dumps(("act", look(), [("head_camera", "|u1", (2, 2, 3), 0)]))
    theirs.sendall(len(data).to_bytes(8, "little") + data)
    line = Line(ours)
    with pytest.raises(RoadClosedError, match="wasn't handed over"):
        line.hear()
    line.close()
    theirs.close()


def test_something_that_is_no_message_drops_its_sender_alone(album):
    _, desk, call = album
    bad = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bad.connect(desk.address.name)
    bad.send((5).to_bytes(8, "little") + b"hello")
    bad.settimeout(5)
    assert bad.recv(1) == b""
    bad.close()
    assert call().ask("act", look()).chunk is not None


def test_where_pictures_dont_arrive_the_short_way_isnt_taken(album, monkeypatch):
    _, _, call = album
    monkeypatch.setattr(local_road.SharedPictures, "read", lambda self, entries: {"hello": np.zeros(3)})
    with pytest.raises(RoadClosedError, match="don't arrive as they were sent"):
        call()

    def no_memory(name):
        raise OSError("not here")

    monkeypatch.setattr(os, "memfd_create", no_memory)
    with pytest.raises(RoadClosedError, match="no shared memory for pictures: not here"):
        call()


def test_an_address_of_another_machine_answers_nobody():
    with pytest.raises(RoadClosedError, match="no policy server listens there"):
        LocalCaller(Album.spec, LocalAddress(name=b"\0evalkit-of-another-machine"))


class UnsendableError(Exception):
    """Can be pickled, and not read back."""

    def __init__(self, one, two):
        super().__init__(one)
        self.two = two


def test_an_error_that_cant_travel_arrives_as_its_text(album, monkeypatch):
    def fail(policy, observations):
        raise UnsendableError("the bug", 2)

    monkeypatch.setattr(policy_desk, "decide_batch", fail)
    with pytest.raises(HarnessError, match="UnsendableError: the bug"):
        album[2]().ask("act", look())


def test_a_policy_that_cant_be_loaded_says_so():
    def broken():
        raise ValueError("no weights here")

    with pytest.raises(ValueError, match="no weights here"):
        PolicyDesk(broken)


def ask_until_it_fails(decider, observation):
    """Ray's kill takes its time."""
    for _ in range(200):
        decider.decide(observation)
        time.sleep(0.05)


def test_sim_actors_take_the_short_way_and_ray_where_there_is_none(ray_here):
    from evalkit.pool.policy_server import PolicyRoad, PolicyServer, RemoteDecider
    from evalkit.pool.ray_session import ray

    server = ray.remote(num_cpus=0, max_concurrency=10)(PolicyServer).remote(Make(Queue50))
    road = PolicyRoad(server=server, spec=Queue50.spec, generation=0, limit_s=30.0)
    images = {"head_camera": np.zeros((240, 320, 3), np.uint8)}
    near, far = RemoteDecider(road), RemoteDecider(road)
    far._look = lambda: None  # as on another machine
    chunks = []
    for decider, is_local in ((near, True), (far, False)):
        decider.reset(begin(session=str(is_local)))
        chunks.append(decider.decide(look(session=str(is_local), images=images)).chunk)
        decider.end(str(is_local), True)
        assert decider.is_local is is_local
    assert np.array_equal(*chunks)
    ray.kill(server)
    for decider in (near, far):
        with pytest.raises(PolicyLostError, match="died during act") as caught:
            ask_until_it_fails(decider, look(session="True", images=images))
        assert caught.value.kind == "policy_server_died"
    near.close()
