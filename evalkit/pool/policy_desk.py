"""The thread that owns a policy: takes requests from sockets of this machine and from Ray, and answers in batches.

The next batch is whatever waits when the policy is free: nothing waits for a timer. The policy lives in one thread, so
that its calls never overlap and its library's thread settings hold; the same thread reads the sockets, so that no
request changes hands on its way.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import selectors
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalkit.core.errors import HarnessError, PolicyLostError
from evalkit.episode.decide import Decision, decide_batch, end_policy, reset_policy
from evalkit.policy.contract import EndingPolicy, Policy
from evalkit.pool.jobs import PolicyFactory
from evalkit.pool.local_caller import Call, check_sum
from evalkit.pool.local_road import Line, LocalAddress, RoadClosedError, is_own_user, listen
from evalkit.pool.within_memory import OUT_OF_MEMORY

STALLED_S = 10.0
"""A caller that stops in the middle of a message is dropped after so long."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Request:
    call: str
    argument: Any
    """``hello``, ``act``: Observation. ``reset``: EpisodeInfo. ``end``: (session, success)."""
    reply: Callable[[bool, Any], None]
    """Takes (True, answer) or (False, exception)."""


class PolicyDesk:
    """Owns the policy and its thread, which ends with the process.

    Args:
        make_policy: called in the thread. If the policy has a ``max_batch`` (see ``evalkit.pool.within_memory``), no
            batch is larger.

    Raises:
        Exception: whatever ``make_policy`` raises.
    """

    def __init__(self, make_policy: PolicyFactory) -> None:
        self._listener, self.address = self._open()
        self._inbox: deque[_Request] = deque()
        self._waiting: list[_Request] = []
        self._bell, self._rope = socket.socketpair()
        self._rope.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)
        if self._listener is not None:
            self._selector.register(self._listener, selectors.EVENT_READ)
        self.batch_sizes: dict[int, int] = {}
        """Batch size -> number of batches so far."""
        self._lost: PolicyLostError | None = None
        """Set when the way to the policy broke: the episodes it knew are gone, whatever it may answer from now on."""
        loaded: Future[Policy] = Future()
        threading.Thread(target=self._run, args=(make_policy, loaded), name="policy", daemon=True).start()
        try:
            self.policy = loaded.result()
        except BaseException:
            for end in (self._listener, self._bell, self._rope, self._selector):
                if end is not None:
                    end.close()
            raise

    def ask(self, call: Call, argument: Any) -> Future[Any]:
        """Hand in a request from any thread of this process."""
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()  # nobody takes a question back

        def reply(done: bool, value: Any) -> None:
            if done:
                answer.set_result(value)
            else:
                answer.set_exception(value)

        self._inbox.append(_Request(call=call, argument=argument, reply=reply))
        with contextlib.suppress(BlockingIOError):  # so many rings are unheard that one more changes nothing
            self._rope.send(b"!")
        return answer

    @staticmethod
    def _open() -> tuple[socket.socket | None, LocalAddress | None]:
        """Abstract sockets are Linux's; where there are none, every caller comes through Ray."""
        try:
            return listen()
        except OSError as error:
            _log.warning("the policy can be reached through Ray only: %s", error)
            return None, None

    # ------------------------------------------------------------------------------------------ the thread
    def _run(self, make_policy: PolicyFactory, loaded: Future[Policy]) -> None:
        try:
            policy = load(make_policy)
        except BaseException as error:  # raised again where the policy was asked for
            loaded.set_exception(error)
            return
        loaded.set_result(policy)
        while True:
            self._gather()
            self._serve(policy)

    def _gather(self) -> None:
        """Wait until there is a request, then take all there are."""
        for key, _ in self._selector.select(0 if self._waiting else None):
            if key.fileobj is self._listener:
                self._accept(self._listener)
            elif key.fileobj is self._bell:
                self._bell.recv(4096)
                while self._inbox:
                    self._waiting.append(self._inbox.popleft())
            else:
                self._hear(key.data)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return  # gave up before its turn came
        if not is_own_user(connection):
            connection.close()
            return
        connection.settimeout(STALLED_S)
        self._selector.register(connection, selectors.EVENT_READ, Line(connection))

    def _hear(self, line: Line) -> None:
        try:
            call, argument = line.hear()
        except (RoadClosedError, TimeoutError):
            self._drop(line)
            return

        def reply(done: bool, value: Any) -> None:
            try:
                line.answer((done, value if done else _portable(value)))
            except (RoadClosedError, TimeoutError) as error:
                _log.warning("a caller of the policy was gone before its answer: %s", error)
                self._drop(line)

        self._waiting.append(_Request(call=call, argument=argument, reply=reply))

    def _drop(self, line: Line) -> None:
        if line.connection.fileno() >= 0:
            self._selector.unregister(line.connection)
            line.close()

    def _serve(self, policy: Policy) -> None:
        """Episodes that begin or end first, then one batch of decisions."""
        limit: int | None = getattr(policy, "max_batch", None)
        looks = [request for request in self._waiting if request.call == "act"]
        words = [request for request in self._waiting if request.call != "act"]
        batch, self._waiting = looks[:limit], looks[limit:] if limit else []
        for request in words:
            self._answer([request], partial(_word, policy, request))
        if batch:
            self.batch_sizes[len(batch)] = self.batch_sizes.get(len(batch), 0) + 1
            self._answer(batch, partial(decide_batch, policy, [request.argument for request in batch]))

    def _answer(self, requests: list[_Request], work: Callable[[], Sequence[Any]]) -> None:
        replies: list[tuple[bool, Any]] = [(False, self._lost)] * len(requests)
        if self._lost is None or requests[0].call in ("hello", "end"):
            try:
                replies = [(True, answer) for _, answer in zip(requests, work(), strict=True)]
            except BaseException as error:  # the callers raise it; the server goes on
                replies = [(False, error)] * len(requests)
                if isinstance(error, PolicyLostError) and error.kind != OUT_OF_MEMORY:
                    self._lost = error  # memory may do for the next: only those who asked start again
        for request, (done, value) in zip(requests, replies, strict=True):
            request.reply(done, value)


def _word(policy: Policy, request: _Request) -> list[Decision | int | None]:
    if request.call == "hello":
        return [check_sum(request.argument)]
    if request.call == "reset":
        return [reset_policy(policy, request.argument)]
    if isinstance(policy, EndingPolicy):
        end_policy(policy, *request.argument)
    return [None]


def _portable(error: BaseException) -> Exception:
    """The error itself if the caller can read it, else its text."""
    if isinstance(error, Exception):
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # whatever an exception's own pickling raises
            return HarnessError(f"{type(error).__name__}: {error}")
        return error
    return HarnessError(f"the policy raised {type(error).__name__}: {error}")


def load(make_policy: PolicyFactory) -> Policy:
    """Make the policy with one CPU thread: simulators need the cores, and sums don't depend on the machine's size."""
    policy = make_policy()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    return policy
