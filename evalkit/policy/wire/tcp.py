"""XPolicyLab's legacy TCP transport, which is RoboTwin's ``policy_model_server`` as well, from the client's end."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.core.errors import PolicyError, PolicyLostError, UserError
from evalkit.policy.contract import EpisodeInfo
from evalkit.policy.wire.connection import CALL_S, CONNECT_S
from evalkit.policy.wire.packing import from_json, to_json
from evalkit.policy.wire.stream import read_exactly


class TcpLink:
    """The legacy TCP transport: a 4-byte length, then JSON; a command is the name of a method of the model.

    Args:
        host: where the server listens.
        port: its port.
        connect_s: how long to try to connect.
        call_s: how long an answer may take.
    """

    def __init__(self, host: str, port: int, *, connect_s: float = CONNECT_S, call_s: float = CALL_S) -> None:
        if not 0 < port < 65536:
            raise UserError(f"server port {port}: give a number from 1 to 65535")
        self._address, self._connect_s, self._call_s = (host, port), connect_s, call_s
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """See ``XPolicyLabLink``."""
        self._open()

    def reset(self, info: EpisodeInfo) -> None:
        """See ``XPolicyLabLink``; the method takes nothing, so instruction and seed don't cross this wire."""
        self.call("reset")

    def infer(self, observation: Mapping[str, Any], between: Sequence[Mapping[str, Any]] = ()) -> Any:
        """See ``XPolicyLabLink``."""
        for seen in (*between, observation):
            self.call("update_obs", seen)
        return self.call("get_action")

    def end(self, success: bool | None) -> None:
        """See ``XPolicyLabLink``; this transport has no such method."""

    def call(self, command: str, value: Any = None) -> Any:
        """One command.

        Raises:
            PolicyError: the model raised.
            PolicyLostError: no server, or no answer in time.
        """
        data = to_json({"cmd": command, "obs": value})
        link = self._open()
        try:
            link.sendall(struct.pack(">I", len(data)) + data)
            answer = from_json(read_exactly(link, struct.unpack(">I", read_exactly(link, 4))[0]))
        except TimeoutError:
            raise self._lost(f"gave no answer to {command} within {self._call_s:g} s", "policy_timeout") from None
        except OSError as error:
            raise self._lost(f"closed the connection during {command}: {error}") from error
        if "error" in answer:
            raise PolicyError("server_error", f"the policy server raised in {command}: {answer['error']}")
        return answer.get("res")

    def close(self) -> None:
        """See ``XPolicyLabLink``."""
        link, self._socket = self._socket, None
        if link is not None:
            link.close()

    def _open(self) -> socket.socket:
        until = time.monotonic() + self._connect_s
        while self._socket is None:
            try:
                self._socket = socket.create_connection(self._address, timeout=max(0.1, until - time.monotonic()))
                self._socket.settimeout(self._call_s)
            except OSError as error:
                if time.monotonic() + 0.5 > until:
                    raise self._lost(f"isn't there after {self._connect_s:g} s ({error}): is it running?") from error
                time.sleep(0.5)
        return self._socket

    def _lost(self, what: str, kind: str = "policy_lost") -> PolicyLostError:
        self.close()
        return PolicyLostError(kind, f"the policy server at {self._address[0]}:{self._address[1]} {what}")
