"""`tw.keras` and the short names: the same objects, also for import statements."""

import importlib

import tapewright as tw


def test_the_names_stand_for_the_same_objects():
    keras = tw.keras
    assert keras.losses is tw.losses and keras.metrics is tw.metrics
    for name in ("layers", "optimizers", "datasets", "layers.initializers"):
        here = getattr(keras, name.rpartition(".")[2])
        there = importlib.import_module(f"tapewright.{name}")
        for each in there.__all__:
            if each != "schedules":  # a module with the same names
                assert getattr(here, each) is getattr(there, each), each
    assert keras.Sequential is tw.Sequential is keras.models.Sequential
    assert keras.activations.softplus is tw.nn.softplus
    assert keras.layers.Layer is keras.Layer


def test_every_name_of_the_list_exists():
    for name in tw.keras.__all__:
        assert getattr(tw.keras, name).__doc__


def test_modules_can_be_imported_from_it():
    for name in ("layers", "losses", "optimizers", "datasets", "utils", "models"):
        module = importlib.import_module(f"tapewright.keras.{name}")
        assert module is getattr(tw.keras, name)


def test_datasets_have_their_loaders():
    for name in ("mnist", "fashion_mnist", "digits"):
        assert callable(getattr(tw.keras.datasets, name).load_data)


def test_a_cleared_session_counts_the_names_of_tensors_anew():
    tw.keras.KerasTensor((2,))
    tw.keras.utils.clear_session()
    names = [tw.keras.KerasTensor((2,)).name for _ in range(2)]
    assert names == ["keras_tensor", "keras_tensor_1"]
