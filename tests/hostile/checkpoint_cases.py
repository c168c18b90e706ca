"""Hostile checkpoints, sealed again after they were changed."""

import files
import numpy as np
from cases import ANY, OK
from own import CHECKPOINT, change_json, own_case


@own_case("own, another shape", CHECKPOINT, r"\(3, 3\)", verify=OK)
def _(file):
    files.replace(file, "arrays/v", np.zeros((3, 3), "f4"))


@own_case("own, int8", CHECKPOINT, "int8|dtype", verify=OK)
def _(file):
    files.replace(file, "arrays/v", np.zeros((2, 2), "i1"))


@own_case("own, complex", CHECKPOINT, "complex|dtype", verify=OK)
def _(file):
    files.replace(file, "arrays/v", np.zeros((2, 2), "c8"))


@own_case("own, an array in place of a group", CHECKPOINT, "group|arrays")
def _(file):
    del file["arrays"]
    file["arrays"] = np.zeros(3)


@own_case("own, info is a list", CHECKPOINT, "object")
def _(file):
    change_json(file, "@info", lambda info: [info])


@own_case("own, a step that is a text", CHECKPOINT, ANY)
def _(file):
    change_json(file, "@info", lambda info: {**info, "step": "many"})


@own_case("own, a generator that is none", CHECKPOINT, "generator")
def _(file):
    change_json(file, "@info", lambda info: {**info, "generator": ["a", -1]})


@own_case("own, a generator too large", CHECKPOINT, "generator")
def _(file):
    change_json(file, "@info", lambda info: {**info, "generator": [2**70, 2**70]})


@own_case("own, states are a list", CHECKPOINT, "object")
def _(file):
    change_json(file, "@states", lambda states: [states])


@own_case("own, a state of another form", CHECKPOINT, "state")
def _(file):
    change_json(file, "@states", lambda s: {**s, "counter": {"object": "os"}})


@own_case("own, a state with an array that is none", CHECKPOINT, "state")
def _(file):
    change_json(file, "@states", lambda s: {**s, "counter": {"array": 99}})


@own_case("own, a state 200 deep", CHECKPOINT, "deep|state")
def _(file):
    value = 1
    for _ in range(200):
        value = {"tuple": [value]}
    change_json(file, "@states", lambda s: {**s, "counter": value})


@own_case("own, a state with a list for a key", CHECKPOINT, "state")
def _(file):
    value = {"dict": [[["a"], 1]]}
    change_json(file, "@states", lambda s: {**s, "counter": value})
