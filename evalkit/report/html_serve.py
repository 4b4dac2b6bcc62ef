"""Serve a run's report page on this machine only. The page is made anew at each request: it follows a run under way."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from evalkit.core.errors import UserError
from evalkit.report.html import REPORT_FILE, render_page
from evalkit.report.html_model import Reference
from evalkit.store.run import MEDIA_FOLDER, open_run

LOOPBACK = "127.0.0.1"
_PAGE = ("", "/", f"/{REPORT_FILE}")


class ReportServer(ThreadingHTTPServer):
    """Serves the page at ``/`` and the run's videos under ``/media/``; every other path is refused.

    Args:
        run_folder: folder of the run.
        port: TCP port; 0 takes a free one.
        references: published results to draw.

    Raises:
        UserError: the port is taken or not allowed.
    """

    daemon_threads = True

    def __init__(self, run_folder: Path, port: int = 0, references: Sequence[Reference] = ()) -> None:
        self.run_folder = run_folder
        self.references = references
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UserError(
                f"port {port} can't be used ({error}): give another with --port, or 0 for a free one"
            ) from error

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"


class _Handler(SimpleHTTPRequestHandler):
    server: ReportServer

    def __init__(self, request: Any, client_address: Any, server: ReportServer) -> None:
        super().__init__(request, client_address, server, directory=str(server.run_folder))

    def do_GET(self) -> None:
        if not self._is_local():
            return
        if urlsplit(self.path).path not in _PAGE:
            super().do_GET()
            return
        body = render_page(open_run(self.server.run_folder), references=self.server.references).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        if self._is_local():
            super().do_HEAD()

    def send_head(self) -> Any:
        """Only videos: the folder's other files and listings aren't for a browser."""
        parts = [part for part in unquote(urlsplit(self.path).path).split("/") if part]
        path = Path(self.translate_path(self.path))
        if len(parts) < 2 or parts[0] != MEDIA_FOLDER or ".." in parts or not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the address only."""

    def _is_local(self) -> bool:
        # A page of another site may make a browser ask this server under a name of its own.
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        if host in (LOOPBACK, "localhost"):
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False
