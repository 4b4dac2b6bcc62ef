from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic import make_run, record

from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.report.html_serve import ReportServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    run = make_run(tmp_path / "run", {("click_bell", "demo_clean"): [Outcome.SUCCESS, None]})
    (run.folder / "media/inner").mkdir(parents=True)
    (run.folder / "media/a b.mp4").write_bytes(b"video")
    (tmp_path / "secret.txt").write_text("secret")
    with ReportServer(run.folder) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def get(server: ReportServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_the_page_and_its_videos(server: ReportServer) -> None:
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    for path in ("/", "/report.html", "/?x"):
        status, body = get(server, path)
        assert (status, body[:15]) == (200, b"<!DOCTYPE html>")
    assert get(server, "/media/a%20b.mp4") == (200, b"video")
    assert get(server, "/media/a%20b.mp4", "HEAD") == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/run.json",
        "/trials.jsonl",
        "/media",
        "/media/",
        "/media/inner",
        "/media/../run.json",
        "/../secret.txt",
        "/media/..%2f..%2fsecret.txt",
        "/media/%2e%2e/run.json",
        "/favicon.ico",
    ],
)
def test_nothing_else_is_served(server: ReportServer, path: str) -> None:
    assert get(server, path)[0] == 404


def test_names_of_other_sites_are_refused(server: ReportServer) -> None:
    assert get(server, "/", host="evil.example:80")[0] == 403
    assert get(server, "/media/a%20b.mp4", "HEAD", host="evil.example")[0] == 403
    assert get(server, "/", host=f"localhost:{server.server_port}")[0] == 200


def test_the_page_follows_the_run(server: ReportServer) -> None:
    from evalkit.store.run import open_run

    assert b"1/1" in get(server, "/")[1]
    run = open_run(server.run_folder)
    run.append(record(run.plan[1], Outcome.SUCCESS))
    run.close()
    assert b"2/2" in get(server, "/")[1]


def test_a_taken_port_is_one_line(server: ReportServer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"port {server.server_port} can't be used"):
        ReportServer(tmp_path, server.server_port)
    with pytest.raises(UserError, match="port 99999 can't be used"):
        ReportServer(tmp_path, 99999)


def test_only_this_machine_is_listened_to(server: ReportServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
