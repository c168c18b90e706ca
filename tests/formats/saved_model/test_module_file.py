"""`save` and `load`: files, options, fresh processes."""

import json
import os
import warnings

import h5py
import numpy as np
import pytest

import tapewright as tw

from ...forks import Forks
from .saving import Net, X, again, gradients_of, holding, traced


@pytest.fixture(scope="module")
def fresh():
    """Returns what code prints in a process that has only imported tapewright."""
    first = "import json\nimport numpy as np\nimport tapewright as tw\n"
    with Forks(first, os.environ | {"PYTHONWARNINGS": "error"}) as forks:
        yield lambda source: json.loads(forks.output(first + source))


def test_a_model_with_known_inputs_is_called_for_inference(tmp_path):
    model = tw.Sequential([tw.Input((2,)), tw.layers.Dense(3), tw.layers.Dropout(0.5)])
    model.compile("sgd", "mse")
    model.fit(X, np.ones((2, 3), np.float32), verbose=0)
    loaded = again(model, tmp_path)
    np.testing.assert_array_equal(loaded(X), model(X))
    assert loaded.signatures["serving_default"](inputs=X)["output_0"].shape == (2, 3)
    assert tw.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY in loaded.signatures


def test_a_fresh_process_needs_nothing_but_the_file(tmp_path, fresh):
    net, path = Net(), tmp_path / "net"
    tw.saved_model.save(net, path)
    x = tw.constant(X)
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            loss = net.loss(x)
        first = tape.gradient(loss, [x, net.w])
    second = outer.gradient(first[0], x)
    wanted = [y.numpy().tolist() for y in (loss, *first, second)]
    found = fresh(f"""
net, x = tw.saved_model.load({str(path)!r}), tw.constant({X.tolist()})
with tw.GradientTape() as outer:
    outer.watch(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = net.loss(x)
    first = tape.gradient(loss, [x, net.w])
second = outer.gradient(first[0], x)
print(json.dumps([y.numpy().tolist() for y in (loss, *first, second)]))
""")
    assert found == wanted


def test_without_custom_gradients_only_this_process_knows_them(tmp_path, fresh):
    options = tw.saved_model.SaveOptions(experimental_custom_gradients=False)
    path = tmp_path / "net"
    tw.saved_model.save(Net(), path, options=options)
    loaded = tw.saved_model.load(path)
    np.testing.assert_array_equal(gradients_of(loaded)[0], gradients_of(Net())[0])
    value, error = fresh(f"""
net, x = tw.saved_model.load({str(path)!r}), tw.constant({X.tolist()})
with tw.GradientTape() as tape:
    y = net(x)
try:
    tape.gradient(y, net.w)
except LookupError as problem:
    error = str(problem)
print(json.dumps([y.numpy().tolist(), error]))
""")
    np.testing.assert_array_equal(np.float32(value), Net()(X))
    assert error.startswith(
        "No gradient defined for operation 'IdentityN' (op type: IdentityN)"
    )


def test_the_file_is_one_sealed_hdf5_file_at_exactly_that_path(tmp_path):
    tw.saved_model.save(Net(), tmp_path / "net.any")
    assert [p.name for p in tmp_path.iterdir()] == ["net.any"]
    with h5py.File(tmp_path / "net.any") as file:
        assert file.attrs["format"] == "tapewright saved_model"
        names = [file[f"variables/{i}"].attrs["name"] for i in range(3)]
        assert names == ["b", "frozen", "w"]
    data = bytearray((tmp_path / "net.any").read_bytes())
    data[-40] ^= 1
    (tmp_path / "net.any").write_bytes(data)
    with pytest.raises(tw.errors.SavingError, match="damaged"):
        tw.saved_model.load(tmp_path / "net.any")


def test_the_file_is_in_a_folder_that_is_there(tmp_path):
    tw.saved_model.save(Net(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["saved_model.h5"]
    assert tw.saved_model.contains_saved_model(tmp_path)
    assert tw.saved_model.load(tmp_path).w.shape == (2, 2)


def test_a_save_that_fails_leaves_the_older_file(tmp_path):
    path = tmp_path / "net"
    tw.saved_model.save(Net(), path)
    bad = holding(f=traced([])(lambda x: tw.py_function(abs, [x], tw.TensorSpec([]))))
    with pytest.raises(tw.errors.SavingError, match=r"test_module_file.py:\d+"):
        tw.saved_model.save(bad, path)
    assert tw.saved_model.load(path).w.shape == (2, 2)


def test_a_path_may_end_in_a_separator(tmp_path):
    """As ``mobilenet/1/``, a version in TensorFlow's guide."""
    path = f"{tmp_path}/net/1/"
    tw.saved_model.save(Net(), path)
    assert tw.saved_model.contains_saved_model(path)
    assert tw.saved_model.load(path).variables


def test_contains_saved_model_knows_its_own_files(tmp_path):
    contains = tw.saved_model.contains_saved_model
    tw.saved_model.save(Net(), tmp_path / "net")
    with h5py.File(tmp_path / "other", "w") as file:
        file["x"] = [1.0]
    (tmp_path / "text").write_text("no file of ours")
    assert contains(tmp_path / "net")
    assert not any(contains(tmp_path / n) for n in ("other", "text", "missing", ""))
    with pytest.raises(tw.errors.SavingError, match=r"saved_model\.save"):
        tw.saved_model.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        tw.saved_model.load(tmp_path / "missing")


def test_options_that_would_do_nothing_are_refused(tmp_path):
    assert tw.saved_model.SaveOptions().experimental_custom_gradients is True
    with pytest.raises(ValueError, match="function_aliases .*supported"):
        tw.saved_model.SaveOptions(function_aliases={"f": abs})
    with pytest.raises(ValueError, match="experimental_io_device"):
        tw.saved_model.LoadOptions(experimental_io_device="/job:localhost")
    with pytest.raises(TypeError, match="SaveOptions"):
        tw.saved_model.save(Net(), tmp_path / "net", options={"x": 1})
    with pytest.raises(
        TypeError, match=r"obj .*tw\.Module.*got builtin_function_or_method"
    ):
        tw.saved_model.save(abs, tmp_path / "net")
    tw.saved_model.save(Net(), tmp_path / "net")
    assert tw.saved_model.load(tmp_path / "net", tags=["serve"])(X).shape == (2, 2)
    with pytest.raises(ValueError, match="tags"):
        tw.saved_model.load(tmp_path / "net", tags="train")


def test_loading_and_saving_warn_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(again(Net(), tmp_path), tmp_path)(X)
