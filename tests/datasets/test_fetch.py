"""Downloads from a server on loopback: what is accepted, refused and left behind."""

import hashlib
import socket
import threading
from pathlib import Path

import pytest

from tapewright.datasets import fetch
from tapewright.datasets.fetch import (
    DownloadError,
    RemoteFile,
    cache_folder,
    download,
)

BODY = bytes(range(256)) * 1000


def remote(body=BODY, kind="sha256", size=None):
    digest = hashlib.new(kind, body).hexdigest()
    return RemoteFile("data.bin", f"{kind}:{digest}", size)


def without_length(body):
    """A handler that sends ``body`` and hangs up, its length untold."""

    def handle(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    return handle


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_right_file_arrives_whole(server, tmp_path, kind):
    server.pages["/data.bin"] = BODY
    path = download(remote(kind=kind, size=len(BODY)), [server.url], tmp_path / "new")
    assert path == tmp_path / "new" / "data.bin"
    assert path.read_bytes() == BODY
    assert [p.name for p in path.parent.iterdir()] == ["data.bin"]


def test_the_second_call_asks_no_server(server, tmp_path):
    server.pages["/data.bin"] = BODY
    download(remote(), [server.url], tmp_path)
    download(remote(), [server.url], tmp_path)
    assert server.asked == ["/data.bin"]


def test_a_damaged_file_in_the_cache_is_replaced(server, tmp_path):
    server.pages["/data.bin"] = BODY
    (tmp_path / "data.bin").write_bytes(BODY[:-1] + b"?")
    assert download(remote(), [server.url], tmp_path).read_bytes() == BODY


def test_cached_finds_only_a_right_file(tmp_path):
    assert fetch.cached(remote(), tmp_path) is None
    (tmp_path / "data.bin").write_bytes(BODY[:-1] + b"?")
    assert fetch.cached(remote(), tmp_path) is None
    (tmp_path / "data.bin").write_bytes(BODY)
    assert fetch.cached(remote(), tmp_path) == tmp_path / "data.bin"


def test_the_next_mirror_is_tried_after_one_fails(server, tmp_path):
    server.pages["/good/data.bin"] = BODY
    mirrors = [server.url + "bad/", server.url + "good/"]
    assert download(remote(), mirrors, tmp_path).read_bytes() == BODY
    assert server.asked == ["/bad/data.bin", "/good/data.bin"]


def test_the_error_names_every_mirror_and_why(server, tmp_path):
    server.pages["/wrong/data.bin"] = b"<html>sign in</html>"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    mirrors = [server.url + "gone/", server.url + "wrong/", dead]
    with pytest.raises(DownloadError) as caught:
        download(remote(), mirrors, tmp_path)
    assert [url for url, _ in caught.value.failures] == [
        m + "data.bin" for m in mirrors
    ]
    text = str(caught.value)
    assert all(mirror in text for mirror in mirrors)
    assert "404" in text and "its sha256 is" in text and "refused" in text
    assert str(tmp_path / "data.bin") in text
    assert isinstance(caught.value, OSError)


def test_a_wrong_checksum_is_refused_and_leaves_nothing(server, tmp_path):
    server.pages["/data.bin"] = BODY[:-1] + b"?"
    with pytest.raises(DownloadError, match="sha256"):
        download(remote(size=len(BODY)), [server.url], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_mirror_that_offers_another_size_is_refused_at_once(server, tmp_path):
    server.pages["/data.bin"] = BODY + b"?"
    with pytest.raises(DownloadError, match=f"announces {len(BODY) + 1} bytes"):
        download(remote(size=len(BODY)), [server.url], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_more_than_the_right_size_is_read(server, tmp_path):
    stopped = threading.Event()

    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(BODY)
        except OSError:
            stopped.set()

    server.pages["/data.bin"] = endless
    with pytest.raises(
        DownloadError, match=f"more than the expected {len(BODY)} bytes"
    ):
        download(remote(size=len(BODY)), [server.url], tmp_path)
    assert stopped.wait(10)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_unknown_size_is_bounded_too(server, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "LARGEST", 1000)
    server.pages["/data.bin"] = without_length(BODY)
    with pytest.raises(DownloadError, match="expected.*1000.*bytes"):
        download(remote(), [server.url], tmp_path)


def test_a_huge_announced_size_is_refused_before_anything_is_read(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(fetch, "LARGEST", 1000)
    server.pages["/data.bin"] = BODY
    with pytest.raises(DownloadError, match=f"announces {len(BODY)} bytes"):
        download(remote(), [server.url], tmp_path)


def test_a_right_file_needs_no_announced_size(server, tmp_path):
    server.pages["/data.bin"] = without_length(BODY)
    assert download(remote(), [server.url], tmp_path).read_bytes() == BODY


def test_a_connection_that_breaks_off_leaves_nothing(server, tmp_path):
    def broken(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(BODY)))
        handler.end_headers()
        handler.wfile.write(BODY[:1000])

    server.pages["/data.bin"] = broken
    with pytest.raises(DownloadError, match=f"1000 of {len(BODY)} bytes"):
        download(remote(), [server.url], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_silent_server_is_given_up_after_the_timeout(server, tmp_path):
    release = threading.Event()
    server.pages["/data.bin"] = lambda handler: release.wait(10)
    try:
        with pytest.raises(DownloadError, match="timed out"):
            download(remote(), [server.url], tmp_path, timeout=0.2)
    finally:
        release.set()
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_the_middle_leaves_nothing(server, tmp_path, monkeypatch):
    def interrupted(response, out, limit, bar):
        out.write(response.read(1000))
        out.flush()
        assert [p.suffix for p in tmp_path.iterdir()] == [".part"]
        raise KeyboardInterrupt

    server.pages["/data.bin"] = BODY
    monkeypatch.setattr(fetch, "_copy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download(remote(), [server.url], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_download_keeps_the_file_that_was_there(server, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"older")
    with pytest.raises(DownloadError) as caught:
        download(remote(), [server.url], tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"older"
    assert caught.value.failures[0][0] == str(tmp_path / "data.bin")


def test_the_cache_lies_in_tapewright_home(monkeypatch, tmp_path):
    monkeypatch.setenv("TAPEWRIGHT_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "datasets"


@pytest.mark.parametrize("value", [None, ""])
def test_the_cache_lies_in_the_home_folder_by_default(monkeypatch, tmp_path, value):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: tmp_path))
    if value is None:
        monkeypatch.delenv("TAPEWRIGHT_HOME", raising=False)
    else:
        monkeypatch.setenv("TAPEWRIGHT_HOME", value)
    assert cache_folder() == tmp_path / ".cache" / "tapewright" / "datasets"
