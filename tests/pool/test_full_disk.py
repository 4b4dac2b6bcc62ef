"""A full disk under the record file: the run ends with one line, nothing is lost or half written, and it goes on."""

import errno
import os

import pytest
from pool_kit import Queue50, essence, fake, open_run, seeds_of, trials

from evalkit.core import files
from evalkit.core.errors import StorageError
from evalkit.core.files import JsonLinesWriter, read_json_lines, write_json
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeWorld


@pytest.fixture
def fill(monkeypatch):
    """A disk that takes so many more bytes."""

    def fill(room_bytes, code=errno.ENOSPC):
        room = [room_bytes]
        write = os.write

        def writes(descriptor, data):
            if not room[0]:
                raise OSError(code, os.strerror(code))
            part = bytes(data)[: room[0]]
            room[0] -= len(part)
            return write(descriptor, part)

        monkeypatch.setattr(files.os, "write", writes)

    yield fill
    monkeypatch.undo()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_line_that_fits_only_half_is_taken_back(tmp_path, fill, code):
    path = tmp_path / "log.jsonl"
    writer = JsonLinesWriter(path)
    writer.append({"number": 1})
    before = path.read_bytes()
    fill(5, code)
    with pytest.raises(StorageError, match=r"the disk doesn't take .*log\.jsonl: .*make room"):
        writer.append({"number": 2})
    assert path.read_bytes() == before
    writer.close()


def test_a_file_that_is_replaced_stays_what_it_was(tmp_path, monkeypatch):
    path = tmp_path / "summary.json"
    write_json(path, {"number": 1})

    def refuse(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", refuse)
    with pytest.raises(StorageError):
        write_json(path, {"number": 2})
    assert [entry.name for entry in tmp_path.iterdir()] == ["summary.json"]
    assert '"number": 1' in path.read_text()


def test_another_error_is_left_as_it_is(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_json(tmp_path / "folder", {})


def test_a_run_on_a_full_disk_loses_nothing_and_goes_on(tmp_path, fill, monkeypatch):
    crew = InlineCrew(1, fake(FakeWorld()), Queue50)
    seeds = seeds_of(crew, tmp_path, 12)
    whole = open_run(tmp_path / "whole", seeds, 12)
    trials(crew, whole)
    run = open_run(tmp_path / "r", seeds, 12)
    record_bytes = (tmp_path / "whole/trials.jsonl").stat().st_size // 12
    fill(record_bytes * 5 + 100)
    with pytest.raises(StorageError):
        trials(InlineCrew(2, fake(FakeWorld()), Queue50), run)
    lines = read_json_lines(tmp_path / "r/trials.jsonl")
    assert 3 <= len(lines) <= 5
    assert (tmp_path / "r/trials.jsonl").read_bytes().endswith(b"\n")
    monkeypatch.undo()
    again = open_run(tmp_path / "r", seeds, 12)
    trials(InlineCrew(2, fake(FakeWorld()), Queue50), again)
    assert len(again.history()) == 12
    assert essence(again) == essence(whole)
