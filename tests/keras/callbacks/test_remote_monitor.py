"""`RemoteMonitor`: requests as Keras makes them, to a server of this process."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import numpy as np
import pytest

from tapewright import keras


@pytest.fixture
def server():
    """``(address, requests)`` of a server that answers 500 to each."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            requests.append((self.path, dict(self.headers), body))
            self.send_error(500)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def test_each_epoch_is_posted_in_a_form_or_as_json(server):
    address, requests = server
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    monitor = keras.callbacks.RemoteMonitor(address, headers={"X-Key": "k"})
    model.fit(
        np.ones((4, 2)), np.ones((4, 1)), epochs=2, verbose=0, callbacks=[monitor]
    )
    path, headers, body = requests[1]
    assert path == "/publish/epoch/end/" and headers["X-Key"] == "k"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    values = json.loads(parse_qs(body)["data"][0])
    assert values == {"epoch": 1, "loss": model.history.history["loss"][1]}
    monitor = keras.callbacks.RemoteMonitor(address, "/at", send_as_json=True)
    monitor.on_epoch_end(3, {"a": np.float32(0.5), "b": np.array([1, 2])})
    path, headers, body = requests[2]
    assert path == "/at" and headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"epoch": 3, "a": 0.5, "b": [1, 2]}


def test_a_server_that_is_not_there_gives_a_warning():
    monitor = keras.callbacks.RemoteMonitor("http://127.0.0.1:9")
    with pytest.warns(
        UserWarning, match="Could not reach RemoteMonitor root server at"
    ):
        monitor.on_epoch_end(0, {"loss": 1.0})
    with pytest.raises(ValueError, match="must begin with http://"):
        keras.callbacks.RemoteMonitor("file:///etc")
