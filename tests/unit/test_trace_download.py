"""Downloads against a server on this machine: whole, cut, lied to, refused."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trainmaster.model.errors import InputError, OutputError, TrainmasterError
from trainmaster.traces.download import (
    DATASETS,
    TRIES,
    Dataset,
    DownloadError,
    RemoteFile,
    download,
    find_dataset,
)

CONTENT = bytes(range(256)) * 4096  # 1 MiB
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """What the server does, and what it saw."""

    url: str = ""
    content: bytes = CONTENT
    ranges: bool = True
    etag: str = '"one"'
    status: int = 200
    cuts: list[int] = field(default_factory=list)
    """Bytes after which each of the next answers is cut."""
    seen: list[str | None] = field(default_factory=list)
    """The Range header of each request."""


class _Handler(BaseHTTPRequestHandler):
    behaviour: Server

    def do_GET(self) -> None:
        server = self.behaviour
        wanted = self.headers.get("Range")
        server.seen.append(wanted)
        if server.status != 200:
            self.send_error(server.status)
            return
        start = 0
        if server.ranges and wanted and self.headers.get("If-Range", server.etag) == server.etag:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
        if start >= len(server.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header(
                "Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}"
            )
        if server.etag:
            self.send_header("ETag", server.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.cuts.pop(0)] if server.cuts else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    behaviour = Server()
    handler = type("Handler", (_Handler,), {"behaviour": behaviour})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http_server:
        behaviour.url = f"http://127.0.0.1:{http_server.server_address[1]}/trace.csv"
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield behaviour
        finally:
            http_server.shutdown()
            thread.join()


class Pauses:
    """Stands in for sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def dataset(server: Server, *, size: int | None = len(CONTENT), sha256: str | None = CHECKSUM) -> Dataset:
    return Dataset("test", "a test", "none", (RemoteFile(server.url, size, sha256),), ())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file_arrives_under_its_name(server: Server, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    folder = tmp_path / "new" / "folder"
    [path] = download(dataset(server), folder, progress=lambda *news: told.append(news))
    assert path == folder / "trace.csv"
    assert path.read_bytes() == CONTENT
    assert names(folder) == ["trace.csv"]
    assert told[-1] == ("trace.csv", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})


def test_a_cut_connection_is_resumed_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000, 500_000]
    pauses = Pauses()
    [path] = download(dataset(server), tmp_path, sleep=pauses)
    assert path.read_bytes() == CONTENT
    assert server.seen == [None, "bytes=300000-", "bytes=800000-"]
    assert pauses.seconds == [1.0, 1.0], "each try brought something, so the wait does not grow"


def test_a_later_run_goes_on_with_the_part_that_is_there(server: Server, tmp_path: Path) -> None:
    (tmp_path / "trace.csv.part").write_bytes(CONTENT[:1000])
    [path] = download(dataset(server), tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.seen == ["bytes=1000-"]


def test_without_checksum_a_part_is_continued_only_if_the_file_is_still_the_same(
    server: Server, tmp_path: Path
) -> None:
    unknown = dataset(server, size=None, sha256=None)
    server.cuts = [400_000, *[0] * (TRIES - 1)]
    with pytest.raises(DownloadError, match="400,000 bytes are kept"):
        download(unknown, tmp_path, sleep=Pauses())
    assert names(tmp_path) == ["trace.csv.part", "trace.csv.part.version"]
    server.content, server.etag = CONTENT[::-1], '"two"'
    [path] = download(unknown, tmp_path, sleep=Pauses())
    assert path.read_bytes() == CONTENT[::-1]
    assert names(tmp_path) == ["trace.csv"]


def test_where_nothing_arrives_nothing_is_left(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = RemoteFile(f"http://127.0.0.1:{closed.getsockname()[1]}/trace.csv")
        dead = Dataset("dead", "nothing", "none", (nowhere,), ())
        with pytest.raises(DownloadError, match=r"the connection failed: .* \(nothing arrived\)$"):
            download(dead, tmp_path / "new", sleep=Pauses())
        (tmp_path / "mine").mkdir()
        with pytest.raises(DownloadError):
            download(dead, tmp_path / "mine", sleep=Pauses())
    assert names(tmp_path) == ["mine"], "only the folder that was made for it is removed"


def test_without_checksum_and_version_a_part_starts_again(server: Server, tmp_path: Path) -> None:
    server.etag = ""
    (tmp_path / "trace.csv.part").write_bytes(b"something else")
    [path] = download(dataset(server, size=None, sha256=None), tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.seen == [None]


def test_a_part_that_is_already_complete_only_needs_its_name(server: Server, tmp_path: Path) -> None:
    (tmp_path / "trace.csv.part").write_bytes(CONTENT)
    [path] = download(dataset(server), tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.seen == [f"bytes={len(CONTENT)}-"]


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "trace.csv.part").write_bytes(CONTENT + b"more")
    [path] = download(dataset(server), tmp_path, sleep=Pauses())
    assert path.read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.cuts = [600_000, 200_000]
    [path] = download(dataset(server), tmp_path, sleep=Pauses())
    assert path.read_bytes() == CONTENT
    assert server.seen == [None, "bytes=600000-", "bytes=200000-"]


@pytest.mark.parametrize(
    ("size", "sha256", "fault"),
    [(len(CONTENT), "0" * 64, "its sha256 is"), (7, None, "its size is 1,048,576 bytes, not 7")],
)
def test_another_file_than_published_is_removed(
    server: Server, tmp_path: Path, size: int, sha256: str | None, fault: str
) -> None:
    with pytest.raises(DownloadError, match=f"{fault}.*removed"):
        download(dataset(server, size=size, sha256=sha256), tmp_path, sleep=Pauses())
    assert names(tmp_path) == []
    assert len(server.seen) == 1, "the same bytes would come again"


def test_not_found_is_told_at_once(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(DownloadError, match=r"trace\.csv: the server answers 404 Not Found"):
        download(dataset(server), tmp_path, sleep=Pauses())
    assert len(server.seen) == 1
    assert names(tmp_path) == []


def test_a_busy_server_is_asked_a_bounded_number_of_times(server: Server, tmp_path: Path) -> None:
    server.status = 503
    pauses = Pauses()
    with pytest.raises(DownloadError, match="503 Service Unavailable"):
        download(dataset(server), tmp_path, sleep=pauses)
    assert len(server.seen) == TRIES
    assert pauses.seconds == [1.0, 2.0, 4.0, 8.0]


def test_a_silent_server_is_given_up_on(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, never answers
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/trace.csv"
        one = Dataset("test", "", "", (RemoteFile(address),), ())
        pauses = Pauses()
        with pytest.raises(DownloadError, match="timed out"):
            download(one, tmp_path, timeout_s=0.05, sleep=pauses)
    assert len(pauses.seconds) == TRIES - 1


def test_a_file_that_is_there_is_checked_not_fetched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_bytes(CONTENT)
    download(dataset(server), tmp_path)
    assert server.seen == []
    (tmp_path / "trace.csv").write_bytes(b"my own notes")
    with pytest.raises(InputError, match=r"trace\.csv: is there, but its size is 12 bytes.*remove it"):
        download(dataset(server), tmp_path)
    assert (tmp_path / "trace.csv").read_bytes() == b"my own notes"


def test_a_folder_that_cannot_be_made_is_one_clear_line(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file: cannot be written"):
        download(dataset(server), tmp_path / "file")


def test_names_of_datasets() -> None:
    assert isinstance(DownloadError("x"), TrainmasterError)
    assert not isinstance(DownloadError("x"), InputError), "exit code 1, not 2"
    with pytest.raises(InputError, match=r"unknown dataset 'phily' .*did you mean 'philly'"):
        find_dataset("phily")
    assert {"philly", "helios", "pai", "acme", "itp", "swf"} <= set(DATASETS)


@pytest.mark.parametrize("name", DATASETS)
def test_every_dataset_is_whole(name: str) -> None:
    found = find_dataset(name)
    assert found.name == name
    assert found.about and found.terms and found.files
    assert any(command.startswith("trainmaster ") for command in found.then)
    for file in found.files:
        assert file.url.startswith("https://")
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
