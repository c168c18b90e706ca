"""A web server around a traced function
=====================================

Serve predictions over HTTP, with Python's standard library.

::

    python examples/serve.py                  (about 5 s: measures itself)
    python examples/serve.py --port 8000      (serves until Ctrl-C)

A request is JSON with one list of 784 numbers per image, the answer has the probabilities
of ten digits; both have the form of TensorFlow Serving's REST interface::

    curl -d '{"instances": [[0, 0, ...]]}' http://localhost:8000/predict

Each request has a thread of its own. Traced functions may be called from many threads,
and machine code does not hold the interpreter's lock.
"""

import argparse
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

import tapewright as tw
from tapewright import keras

# %%
# The server
# ----------


def network():
    """Return a classifier; a real server loads one with ``keras.models.load_model``."""
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )


def server(model, port=0):
    """Return a server for ``model``; port 0 selects any free port."""

    @tw.function(input_signature=[tw.TensorSpec([None, 784], "float32")])
    def predict(x):
        return model(x, training=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections open
        disable_nagle_algorithm = True

        def do_POST(self):
            try:
                size = int(self.headers["Content-Length"])
                rows = np.array(json.loads(self.rfile.read(size))["instances"], "f4")
                status, answer = 200, {"predictions": predict(rows).numpy().tolist()}
            except (ValueError, KeyError, TypeError) as error:
                status, answer = 400, {"error": str(error)}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    predict(np.zeros((1, 784), "f4"))  # the first call compiles
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


# %%
# A client that measures it
# -------------------------


def ask(connection, rows):
    """Send rows of numbers; return the answer of the server."""
    body = json.dumps({"instances": rows})
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        raise ValueError(answer["error"])
    return answer["predictions"]


def measured(port, rows, clients, requests):
    """Measure requests per second with some clients, and the median latency in ms."""

    def client(_):
        connection, times = HTTPConnection("127.0.0.1", port), []
        for _ in range(requests):
            start = time.perf_counter()
            ask(connection, rows)
            times.append(time.perf_counter() - start)
        connection.close()
        return times

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        times = [t for each in pool.map(client, range(clients)) for t in each]
    rate = len(times) / (time.perf_counter() - start)
    return rate, 1000 * float(np.median(times))


def main():
    parser = argparse.ArgumentParser(description="Serve predictions over HTTP.")
    parser.add_argument("--port", type=int, help="serve there until Ctrl-C")
    parser.add_argument("--requests", type=int, default=100, help="of each client")
    parser.add_argument("--epochs", type=int, help="ignored: nothing is trained")
    parser.add_argument("--out", help="ignored: nothing is written")
    args = parser.parse_args()
    model = network()
    if args.port is not None:
        print(f"http://localhost:{args.port}/predict")
        try:
            server(model, args.port).serve_forever()
        except KeyboardInterrupt:
            return
    with server(model) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        print("rows  clients  requests/s  median ms")
        for rows in 1, 32:
            images = np.random.default_rng(0).integers(0, 256, (rows, 784)).tolist()
            for clients in 1, 2, 4:
                found = measured(serving.server_port, images, clients, args.requests)
                print(f"{rows:4}  {clients:7}  {found[0]:10.0f}  {found[1]:9.2f}")
        serving.shutdown()


if __name__ == "__main__":
    main()
