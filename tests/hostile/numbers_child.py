"""Tries hostile numbers in every number of the configs that standard input asks for.

A line of JSON tells what came of a class; lines before it, what is being tried. Run by
runner.py, which notices when nothing more is said.
"""

import copy
import json
import sys
import warnings

import numpy as np
from child import limit_memory
from number_cases import CONFIGS, SKIPPED, hostile_values

import tapewright as tw
from tapewright import keras

ALLOWED = (ValueError, TypeError, tw.errors.ResourceExhaustedError)


def main():
    limit_memory()
    names = list(CONFIGS)
    for line in sys.stdin:
        name = names[int(line)]
        message = "\n".join(sweep(name, CONFIGS[name]))
        outcome = "faults" if message else "OK"
        say({"job": name, "action": "sweep", "outcome": outcome, "message": message})


def say(what):
    print(json.dumps(what), flush=True)


def sweep(name, config):
    """What is wrong with the numbers of one config, a line each."""
    way = find_way(config)
    if way is None:
        yield "the recorded config cannot be used"
    for path in places(config["config"], ()):
        say({"trying": path, "job": name})
        for value in hostile_values(path):
            changed = copy.deepcopy(config)
            put(changed["config"], path, value)
            try:
                thing = keras.saving.deserialize_keras_object(changed)
            except ALLOWED:
                continue
            except Exception as error:
                yield f"{path} = {value}: {error!r:.200}"
                continue
            try:
                use(thing, way)
            except (*ALLOWED, MemoryError):
                pass
            except Exception as error:
                yield f"{path} = {value}, in use: {error!r:.200}"


def find_way(config):
    """Arguments with which the object of a config can be called."""
    for way in WAYS:
        try:
            use(keras.saving.deserialize_keras_object(config), way)
        except Exception:
            continue
        return way


def places(value, path):
    """The paths of numbers, and of None where a number may stand."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in SKIPPED:
                yield from places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from places(each, (*path, index))
    elif value is None or type(value) in (int, float):
        yield path


def put(config, path, value):
    for key in path[:-1]:
        config = config[key]
    config[path[-1]] = value


def numbers(*shape):
    return np.linspace(0, 1, int(np.prod(shape)), dtype="f4").reshape(shape)


LABELS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], "f4")
WAYS = [  # arguments of a call
    (numbers(2, 4),),
    (numbers(2, 6, 4),),
    (numbers(2, 6, 6, 4),),
    (numbers(2, 6, 6, 3),),
    (numbers(2, 6, 6, 6, 4),),
    (numbers(2, 3, 6, 6, 6, 4),),
    (np.array([[1, 2], [0, 1]]),),
    (np.array(["a b", "c"]),),
    (np.array([["a"], ["c"]]),),
    ([numbers(2, 4), numbers(2, 4)],),
    ([numbers(2, 6, 4), numbers(2, 6, 4)],),
    ([np.array(["a", "b"]), np.array(["a", "c"])],),
    (numbers(2, 6, 4), numbers(2, 6, 4)),
    ([numbers(2, 6, 4), numbers(2, 4, 6)],),
    (numbers(2, 4), [numbers(2, 2), [numbers(2, 3)] * 2]),
    (numbers(2, 6, 6, 4), [numbers(2, 6, 6, 2)] * 2),
    (numbers(2, 400),),
    (numbers(2, 400, 1),),
    (numbers(2, 4), [numbers(2, 3)]),
    (numbers(2, 4), [numbers(2, 3), numbers(2, 3)]),
    ({"images": numbers(2, 6, 6, 3), "labels": LABELS},),
    (LABELS, numbers(2, 3)),
    (np.array([0, 1]), numbers(2, 3)),
    (np.array([0, 1, 1]), np.array([0, 1, 1])),
    (np.array([[1], [0]]), numbers(2, 2)),
    (np.array([[1, 2], [1, 1]]), numbers(2, 5, 4)),
    (numbers(2, 4, 4, 3), numbers(2, 4, 4, 3)),
    (numbers(3),),
    ((2, 2),),
    ((400, 1, 129),),
    (3,),
    (),
]


def use(thing, arguments):
    """What `fit` does with a layer, a loss, a metric, an optimizer and so on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(thing, keras.optimizers.Optimizer):
            variable = tw.Variable(np.ones((2, 2), "f4"), name="a/kernel")
            thing.apply([np.ones((2, 2), "f4")], [variable])
        elif isinstance(thing, keras.metrics.Metric):
            thing.update_state(*arguments)
            thing.result()
        elif isinstance(thing, keras.layers.Layer):
            thing(*arguments, **({"training": True} if len(arguments) == 1 else {}))
        elif callable(thing):
            thing(*arguments)


if __name__ == "__main__":
    main()
