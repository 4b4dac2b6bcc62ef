"""openpi's websocket protocol, from the client's end.

The server speaks first: a map of metadata. After that every message is one observation (a map), every answer one map
with the actions. A text instead of a map is the server's traceback. There is no reset: what a server keeps from one
decision to the next, it keeps per connection or not at all, so a new episode may ask for a new connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.core.errors import PolicyError, PolicyLostError
from evalkit.policy.contract import EpisodeInfo
from evalkit.policy.wire.connection import CALL_S, CONNECT_S, Connection
from evalkit.policy.wire.packing import pack, unpack


class OpenpiChannel:
    """Implements ``evalkit.policy.converted.Channel``.

    Args:
        url: address of the server.
        connect_s: how long to try to connect.
        call_s: how long an answer may take.
        api_key: sent as ``Authorization: Api-Key ...`` if given.
        reconnect: whether each episode starts with a new connection.
        reset_message: a request sent at the start of each episode, for servers that know one; its answer is dropped.
            The text ``{instruction}`` in a value is replaced by the episode's.
        end_message: the same for its end; the value ``{success}`` is replaced by the verdict: true, false or null.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_s: float = CONNECT_S,
        call_s: float = CALL_S,
        api_key: str | None = None,
        reconnect: bool = False,
        reset_message: Mapping[str, Any] | None = None,
        end_message: Mapping[str, Any] | None = None,
    ) -> None:
        headers = {"Authorization": f"Api-Key {api_key}"} if api_key else None
        self._connection = Connection(url, connect_s=connect_s, call_s=call_s, headers=headers, greeting=True)
        self._reconnect, self._reset_message, self._end_message = reconnect, reset_message, end_message

    def open(self) -> None:
        """Connect, if there is no connection."""
        self._connection.open()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the server says of itself; connects if need be."""
        self._connection.open()
        hello = self._connection.hello
        if not isinstance(hello, bytes):
            raise PolicyLostError("policy_lost", f"{self._connection.url} doesn't greet as an openpi server does")
        metadata = unpack(hello)
        return metadata if isinstance(metadata, dict) else {}

    def reset(self, info: EpisodeInfo) -> None:
        """See ``Channel``."""
        if self._reconnect:
            self._connection.close()
        self._connection.open()
        if self._reset_message is not None:
            self.call({key: _filled(value, info) for key, value in self._reset_message.items()})

    def infer(self, session: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """See ``Channel``."""
        return self.call(request)

    def end(self, session: str, success: bool | None) -> None:
        """See ``Channel``."""
        if self._end_message is not None:
            self.call({key: success if value == "{success}" else value for key, value in self._end_message.items()})

    def call(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """One message, one answer.

        Raises:
            PolicyError: the server answered with a traceback, or with something else than a map.
            PolicyLostError: see ``Connection.call``.
        """
        answer = self._connection.call(pack(dict(request), "openpi"))
        if isinstance(answer, str):
            self._connection.close()  # the server closes its end after a traceback
            lines = [line for line in answer.strip().splitlines() if line.strip()]
            last = lines[-1].strip() if lines else "no text"
            raise PolicyError("server_error", f"the policy server at {self._connection.url} raised: {last}")
        values = unpack(answer)
        if not isinstance(values, dict):
            raise PolicyError("answer", f"the policy server answered {type(values).__name__}, not a map")
        return {key.decode() if isinstance(key, bytes) else str(key): value for key, value in values.items()}

    def close(self) -> None:
        """See ``Channel``."""
        self._connection.close()


def _filled(value: Any, info: EpisodeInfo) -> Any:
    return value.replace("{instruction}", info.instruction) if isinstance(value, str) else value
