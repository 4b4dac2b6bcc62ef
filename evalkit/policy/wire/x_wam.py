"""X-WAM's broker, from the client's end: pickled messages over ZeroMQ. Only arrays and plain values are unpickled."""

from __future__ import annotations

import io
import pickle
import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from evalkit.core.errors import PolicyError, PolicyLostError, UserError
from evalkit.policy.contract import EpisodeInfo
from evalkit.policy.wire import zmtp
from evalkit.policy.wire.connection import CALL_S, CONNECT_S

_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    ("_codecs", "encode"),
}
"""What numpy's arrays and numbers are pickled as."""


class XWamChannel:
    """Implements ``evalkit.policy.converted.Channel``. The broker's servers keep nothing between requests.

    Args:
        url: ``tcp://HOST:PORT`` of the broker's front end.
        connect_s: how long to try to connect.
        call_s: how long an answer may take.
    """

    def __init__(self, url: str, *, connect_s: float = CONNECT_S, call_s: float = CALL_S) -> None:
        parts = urlsplit(url)
        if parts.scheme != "tcp" or parts.hostname is None or parts.port is None:
            raise UserError(f"broker address {url!r}: give tcp://HOST:PORT")
        self._url, self._address = url, (parts.hostname, parts.port)
        self._connect_s, self._call_s = connect_s, call_s
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connect, if there is no connection.

        Raises:
            PolicyLostError: no broker there within ``connect_s``.
        """
        until = time.monotonic() + self._connect_s
        while self._socket is None:
            try:
                self._socket = self._connect(max(0.1, until - time.monotonic()))
            except OSError as error:
                if time.monotonic() + 0.5 > until:
                    what = f"no broker at {self._url} within {self._connect_s:g} s ({error}): is it running?"
                    raise PolicyLostError("policy_lost", what) from error
                time.sleep(0.5)

    def _connect(self, limit_s: float) -> socket.socket:
        link = socket.create_connection(self._address, timeout=limit_s)
        try:
            zmtp.handshake(link, "DEALER")
        except BaseException:
            link.close()
            raise
        link.settimeout(self._call_s)
        return link

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to tell: every request says which episode and step it is about."""
        self.open()

    def infer(self, session: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """See ``Channel``."""
        self.open()
        assert self._socket is not None
        try:
            zmtp.send(self._socket, pickle.dumps(dict(request), protocol=4))
            data = zmtp.receive(self._socket)
        except TimeoutError:
            self.close()
            what = f"the broker at {self._url} gave no answer within {self._call_s:g} s"
            raise PolicyLostError("policy_timeout", what) from None
        except OSError as error:
            self.close()
            raise PolicyLostError("policy_lost", f"the broker at {self._url} closed the connection: {error}") from error
        answer = unpickle(data)
        if not isinstance(answer, dict):
            raise PolicyError("answer", f"the policy server answered {type(answer).__name__}, not a map")
        return answer

    def end(self, session: str, success: bool | None) -> None:
        """See ``Channel``; the protocol has no such message."""

    def close(self) -> None:
        """See ``Channel``."""
        link, self._socket = self._socket, None
        if link is not None:
            link.close()


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} isn't taken")
        return super().find_class(module_name, global_name)


def unpickle(data: bytes) -> Any:
    """Plain values and numpy arrays; nothing that could run code.

    Raises:
        PolicyError: kind ``answer``: anything else in it, or not a pickle.
    """
    try:
        return _ArraysOnly(io.BytesIO(data)).load()
    except Exception as error:  # a damaged pickle raises whatever it likes
        raise PolicyError("answer", f"a message of {len(data)} bytes can't be read: {error}") from error
