"""IDX bytes, a cache of their own and a web server on loopback for these tests."""

import functools
import http.server
import struct
import threading

import numpy as np
import pytest


@pytest.fixture
def idx_bytes():
    """A function that gives an array the IDX form."""

    def encode(array):
        array = np.asarray(array, np.uint8)
        header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        return header + array.tobytes()

    return encode


@pytest.fixture
def some_images():
    """A function that makes ``n`` different 28x28 images and their labels."""

    def make(n, seed=0):
        rng = np.random.default_rng(seed)
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        return images, rng.integers(0, 10, n, dtype=np.uint8)

    return make


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The cache folder, in a home of the test's own."""
    monkeypatch.setenv("TAPEWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "datasets"


@pytest.fixture
def server(monkeypatch):
    """A web server: ``pages`` maps paths to bytes or handlers, ``asked`` is its log."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with _Server(("127.0.0.1", 0), _Handler) as running:
        thread = threading.Thread(
            target=functools.partial(running.serve_forever, poll_interval=0.01)
        )
        thread.start()
        yield running
        running.shutdown()
        thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *args):
        super().__init__(*args)
        self.pages, self.asked = {}, []
        self.url = f"http://127.0.0.1:{self.server_port}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
        elif callable(page):
            page(self)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    def log_message(self, *args):
        pass
