"""Answers are those of the model, from several clients, and bad requests get an error."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import pytest


@pytest.fixture
def serving(script):
    with script.server(script.network()) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def test_answers_are_those_of_the_model(script, serving):
    rows = np.random.default_rng(1).random((5, 784), "f4")
    wanted = script.network()(rows).numpy()

    def client(count):
        connection = HTTPConnection("127.0.0.1", serving.server_port)
        found = script.ask(connection, rows[:count].tolist())
        np.testing.assert_allclose(found, wanted[:count], rtol=1e-5)
        connection.close()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(client, range(1, 6)))


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], "text", [["a"] * 784], None])
def test_bad_requests_get_an_error(rows, script, serving):
    connection = HTTPConnection("127.0.0.1", serving.server_port)
    with pytest.raises(ValueError):
        script.ask(connection, rows)
    good = script.ask(connection, [[0.0] * 784])  # the server goes on
    assert len(good[0]) == 10
    connection.close()


def test_it_measures_itself(run, script):
    _, printed = run(script, "--requests", "2", picture=True)
    assert (
        printed.splitlines()[0].split() == "rows clients requests/s median ms".split()
    )
    assert len(printed.splitlines()) == 7
