"""Servers in threads: each serves one policy under one protocol until it is closed. Loopback unless told otherwise."""

from __future__ import annotations

import http
import threading
import traceback
from collections.abc import Callable
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from evalkit.core.errors import UserError
from evalkit.policy.wire.packing import pack, unpack
from evalkit.serve.openpi import answer_openpi
from evalkit.serve.served import Client, ServedPolicy
from evalkit.serve.xpolicylab import answer_envelope

LOOPBACK = "127.0.0.1"
Handler = Callable[[ServerConnection, Client], None]


class WebsocketServer:
    """A policy behind a websocket.

    Args:
        served: the policy.
        protocol: ``openpi`` or ``xpolicylab``.
        host: address to listen on.
        port: port to listen on; 0 for a free one.

    Raises:
        UserError: the port is taken, the protocol unknown, or the policy needs more than its clients send.
    """

    def __init__(self, served: ServedPolicy, protocol: str, *, host: str = LOOPBACK, port: int = 0) -> None:
        handlers: dict[str, Handler] = {"openpi": self._openpi, "xpolicylab": self._xpolicylab}
        if protocol not in handlers:
            raise UserError(f"protocol {protocol!r} has no websocket: use {', '.join(handlers)}")
        if served.spec.history_steps > 1:
            what = f"policy {served.spec.name} needs {served.spec.history_steps} observations for a decision"
            raise UserError(f"{what}; clients of {protocol} send one: serve it with --protocol tcp, or not at all")
        self._served, handler = served, handlers[protocol]

        def handle(connection: ServerConnection) -> None:
            client = served.client()
            try:
                handler(connection, client)
            finally:
                client.end(None)

        try:
            self._server: Server = serve(
                handle, host, port, compression=None, max_size=None, ping_interval=None, process_request=_health
            )
        except OSError as error:
            raise UserError(f"can't listen on {host}:{port}: {error}; choose another --port") from error
        self.address: tuple[str, int] = self._server.socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, name="policy-server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"ws://{self.address[0]}:{self.address[1]}"

    def wait(self) -> None:
        """Serve until closed from elsewhere."""
        self._thread.join()

    def close(self) -> None:
        """Stop listening and end the connections."""
        self._server.shutdown()
        self._thread.join()

    def _openpi(self, connection: ServerConnection, client: Client) -> None:
        connection.send(pack(dict(self._served.metadata), "openpi"))
        while (message := _receive(connection)) is not None:
            try:
                answer = answer_openpi(client, unpack(message))
            except Exception:  # the protocol's way to report: a traceback as text, and the end of the connection
                connection.send(traceback.format_exc())
                connection.close(CloseCode.INTERNAL_ERROR, "the traceback is in the frame before")
                return
            connection.send(pack(answer, "openpi"))

    def _xpolicylab(self, connection: ServerConnection, client: Client) -> None:
        while (message := _receive(connection)) is not None:
            answer = answer_envelope(client, unpack(message))
            if answer is None:
                return
            connection.send(pack(answer, "msgpack_numpy"))


def _receive(connection: ServerConnection) -> bytes | None:
    """The next binary message; None when the client is gone. Texts mean nothing in either protocol."""
    while True:
        try:
            message: Any = connection.recv()
        except ConnectionClosed:
            return None
        if isinstance(message, bytes):
            return message


def _health(connection: ServerConnection, request: Request) -> Response | None:
    return connection.respond(http.HTTPStatus.OK, "OK\n") if request.path == "/healthz" else None
