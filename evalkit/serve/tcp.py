"""XPolicyLab's legacy TCP server: a 4-byte length, then JSON; a command is the name of a method."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.wire.packing import from_json, to_json
from evalkit.serve.served import Client, ServedPolicy
from evalkit.serve.server import LOOPBACK
from evalkit.serve.xpolicylab import infer, reset

LONGEST_MESSAGE = 1 << 28


class TcpServer:
    """A policy behind the legacy TCP protocol; the same methods as ``WebsocketServer``.

    Args:
        served: the policy.
        host: address to listen on.
        port: port to listen on; 0 for a free one.

    Raises:
        UserError: the port is taken.
    """

    def __init__(self, served: ServedPolicy, *, host: str = LOOPBACK, port: int = 0) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                client = served.client()
                try:
                    _serve_client(self.rfile.read, self.wfile.write, client)
                finally:
                    client.end(None)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        try:
            self._server = Server((host, port), Handler)
        except OSError as error:
            raise UserError(f"can't listen on {host}:{port}: {error}; choose another --port") from error
        self.address: tuple[str, int] = self._server.server_address[:2]  # type: ignore[assignment]
        self._thread = threading.Thread(target=self._server.serve_forever, name="policy-server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"tcp://{self.address[0]}:{self.address[1]}"

    def wait(self) -> None:
        """Serve until closed from elsewhere."""
        self._thread.join()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _serve_client(read: Callable[[int], bytes], write: Callable[[bytes], Any], client: Client) -> None:
    seen: deque[Any] = deque(maxlen=client.history_steps)
    latest: Any = None
    while len(head := read(4)) == 4:
        length = struct.unpack(">I", head)[0]
        if length > LONGEST_MESSAGE:
            return
        try:
            request = from_json(read(length))
            command, value = request.get("cmd"), request.get("obs")
            result: Any = None
            if command == "update_obs":
                seen.append(value)
            elif command == "get_action":
                latest = seen.pop() if seen else latest
                between = list(seen)
                seen.clear()
                result = infer(client, latest, between)["actions"]
            elif command in ("reset", "reset_model"):
                seen.clear()
                reset(client, value if isinstance(value, dict) else {})
            else:
                raise PolicyError("request", f"no method {command!r}: use update_obs, get_action, reset")
            answer = {"res": result}
        except Exception as error:  # reported in the protocol's way
            answer = {"error": f"{type(error).__name__}: {error}"}
        data = to_json(answer)
        write(struct.pack(">I", len(data)) + data)
