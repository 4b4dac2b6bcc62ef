"""The short way between a sim actor and a policy server on one machine: a socket for words, shared memory for pictures.

A call through Ray costs milliseconds with three pictures in it: they are serialised, put into the object store, and
announced to two more processes. Here the caller writes them into memory that both ends have mapped, and sends the rest,
a few hundred bytes. The server copies them out, because policies may keep what they are shown. Both ends have no name
in the file system: nothing is left behind when a process is killed.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import socket
import struct
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.policy.contract import Observation

_LENGTH = struct.Struct("<Q")
_CREDENTIALS = struct.Struct("3i")
_LONGEST = 1 << 30
_ALIGN = 64


class RoadClosedError(Exception):
    """The other end is gone, or what it sent is no message."""


@dataclass(frozen=True, kw_only=True)
class LocalAddress:
    """Where a policy server listens for callers on its own machine. Random: on another machine nobody answers there."""

    name: bytes
    """Of an abstract Unix socket."""


def listen() -> tuple[socket.socket, LocalAddress]:
    """A listening socket that doesn't block, and its address.

    Raises:
        OSError: there are no such sockets here.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    name = b"\0evalkit-" + os.urandom(16).hex().encode()
    listener.bind(name)
    listener.listen(4096)
    listener.setblocking(False)
    return listener, LocalAddress(name=name)


def is_own_user(connection: socket.socket) -> bool:
    """Whether the other end belongs to this user: anybody may connect, and messages are pickles."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(raw)[1] == os.getuid())


def connect(address: LocalAddress, limit_s: float) -> socket.socket:
    """A connection whose calls give up after ``limit_s``.

    Raises:
        RoadClosedError: nobody listens there, or somebody else's process does.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(limit_s)
    try:
        connection.connect(address.name)
    except OSError as error:
        connection.close()
        raise RoadClosedError(f"no policy server listens there: {error}") from error
    if not is_own_user(connection):
        connection.close()
        raise RoadClosedError("the policy server's socket belongs to another user")
    return connection


@dataclass
class SharedPictures:
    """Memory that one end writes and the other reads. The writer makes it and hands over its descriptor once."""

    descriptor: int | None = None
    memory: mmap.mmap | None = None

    def write(self, images: dict[str, NDArray[Any]]) -> tuple[list[tuple[str, str, tuple[int, ...], int]], bool]:
        """Put pictures there.

        Returns:
            Name, dtype, shape and offset of each; and whether the memory is new to the other end.
        """
        offsets, used = [], 0
        for image in images.values():
            offsets.append(used)
            used += -(-image.nbytes // _ALIGN) * _ALIGN
        fresh = self.memory is None or used > len(self.memory)
        if fresh:
            self.close()
            self.descriptor = os.memfd_create("evalkit-pictures")
            os.ftruncate(self.descriptor, max(used, mmap.PAGESIZE))
            self.memory = mmap.mmap(self.descriptor, 0)
        assert self.memory is not None
        entries = []
        for (name, image), offset in zip(images.items(), offsets, strict=True):
            there: NDArray[Any] = np.ndarray(image.shape, image.dtype, self.memory, offset)
            there[...] = image
            entries.append((name, image.dtype.str, image.shape, offset))
        return entries, fresh

    def adopt(self, descriptor: int) -> None:
        """Map what the other end made; the descriptor is closed."""
        self.close()
        try:
            self.memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)

    def read(self, entries: list[tuple[str, str, tuple[int, ...], int]]) -> dict[str, NDArray[Any]]:
        """Copies of the pictures."""
        if entries and self.memory is None:
            raise RoadClosedError("a message refers to pictures in memory that wasn't handed over")
        return {
            name: np.ndarray(shape, np.dtype(kind), self.memory, offset).copy() for name, kind, shape, offset in entries
        }

    def close(self) -> None:
        """Unmap."""
        if self.memory is not None:
            with contextlib.suppress(BufferError):  # a view is still alive in a traceback: it ends with that
                self.memory.close()
            self.memory = None
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


@dataclass
class Line:
    """One end of a connection."""

    connection: socket.socket
    pictures: SharedPictures = field(default_factory=SharedPictures)

    def ask(self, call: str, argument: Any) -> None:
        """Send a request: the caller's side.

        Raises:
            RoadClosedError: the other end is gone.
        """
        entries: list[Any] = []
        descriptors: list[int] = []
        if isinstance(argument, Observation) and argument.images:
            try:
                entries, fresh = self.pictures.write(dict(argument.images))
            except OSError as error:
                raise RoadClosedError(f"there is no shared memory for pictures: {error}") from error
            argument = replace(argument, images={})
            if fresh and self.pictures.descriptor is not None:
                descriptors = [self.pictures.descriptor]
        self._send((call, argument, entries), descriptors)

    def hear(self) -> tuple[str, Any]:
        """Receive a request: the server's side. Observations come with pictures that nobody else writes.

        Raises:
            RoadClosedError: the other end is gone.
        """
        call, argument, entries = self._receive()
        if entries:
            argument = replace(argument, images=self.pictures.read(entries))
        return call, argument

    def answer(self, value: Any) -> None:
        """Send an answer: the server's side.

        Raises:
            RoadClosedError: the other end is gone.
        """
        self._send(value, [])

    def listen(self) -> Any:
        """Receive an answer: the caller's side.

        Raises:
            RoadClosedError: the other end is gone.
            TimeoutError: nothing came within the connection's limit.
        """
        return self._receive()

    def close(self) -> None:
        """Hang up."""
        self.connection.close()
        self.pictures.close()

    def _send(self, value: Any, descriptors: list[int]) -> None:
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        block = _LENGTH.pack(len(data)) + data
        try:
            sent = socket.send_fds(self.connection, [block], descriptors) if descriptors else 0
            self.connection.sendall(memoryview(block)[sent:])
        except TimeoutError:
            raise
        except OSError as error:
            raise RoadClosedError(f"the connection broke: {error}") from error

    def _receive(self) -> Any:
        try:
            head, descriptors, _, _ = socket.recv_fds(self.connection, _LENGTH.size, 1)
            for descriptor in descriptors:
                self.pictures.adopt(descriptor)
            (length,) = _LENGTH.unpack(head + self._exactly(_LENGTH.size - len(head))) if head else (0,)
            if not 0 < length < _LONGEST:
                raise RoadClosedError("the other end closed the connection")
            data = self._exactly(length)
        except TimeoutError:
            raise
        except OSError as error:
            raise RoadClosedError(f"the connection broke: {error}") from error
        try:
            return pickle.loads(data)
        except Exception as error:  # whatever reading a broken pickle raises
            raise RoadClosedError(f"what came is no message: {type(error).__name__}: {error}") from error

    def _exactly(self, length: int) -> bytearray:
        data = bytearray(length)
        view, filled = memoryview(data), 0
        while filled < length:
            count = self.connection.recv_into(view[filled:])
            if count == 0:
                raise RoadClosedError("the other end closed the connection")
            filled += count
        return data
