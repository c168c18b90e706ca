"""The public face: what `__all__` lists is sorted, is there, and says what it does."""

import importlib
import importlib.util
import inspect
import pkgutil

import pytest

import tapewright as tw


def modules():
    """All modules of the package, by name; the front door with them."""
    names = [tw.__name__]
    for info in pkgutil.walk_packages(tw.__path__, tw.__name__ + "."):
        names.append(info.name)
    for folder in ("layers", "optimizers", "datasets"):
        if importlib.util.find_spec(f"tapewright.{folder}") is not None:
            package = importlib.import_module(f"tapewright.{folder}")
            names += [f"{package.__name__}"]
            names += [
                i.name
                for i in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
            ]
    return sorted(set(names))


MODULES = modules()
LISTED = [n for n in MODULES if hasattr(importlib.import_module(n), "__all__")]
OWN_NAMES = sorted(
    {
        (value.__module__, name): value
        for module in LISTED
        for name in importlib.import_module(module).__all__
        for value in [getattr(importlib.import_module(module), name, None)]
        if (inspect.isfunction(value) or inspect.isclass(value))
        and str(value.__module__).startswith("tapewright")
    }.items(),
    key=lambda item: item[0],
)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_a_docstring_and_a_list_of_names(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module), f"{name} does not say what it is"
    is_listing = hasattr(module, "__path__") or name in (
        "tapewright.api.math",
        "tapewright.api.nn",
        "tapewright.api.linalg",
        "tapewright.api.signal",
        "tapewright.autodiff",
        "tapewright.api.bitwise",
    )
    assert is_listing or hasattr(module, "__all__"), f"{name} has no __all__"


@pytest.mark.parametrize("name", LISTED)
def test_all_is_sorted_without_repeats_and_resolvable(name):
    module = importlib.import_module(name)
    names = list(module.__all__)
    assert len(set(names)) == len(names)
    assert all(hasattr(module, n) for n in names), f"{name} lists what it does not have"
    assert names == sorted(names) or sorted(names, key=str.lower) == names
    assert not [n for n in names if n.startswith("_")]


@pytest.mark.parametrize(
    "value", [v for _, v in OWN_NAMES], ids=[f"{m}.{n}" for (m, n), _ in OWN_NAMES]
)
def test_every_public_function_and_class_is_documented(value):
    own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert own and own.strip(), f"{value.__module__}.{value.__qualname__}"
    first = own.strip().splitlines()[0]
    assert first[-1] in ".:;,`)" or len(first) > 60, first


TOP = """
    GradientTape UnconnectedGradients Variable constant convert_to_tensor TensorSpec
    TensorShape Tensor IndexedSlices is_tensor custom_gradient RegisterGradient
    recompute_grad grad_pass_through stop_gradient Module matmul einsum tensordot reshape
    transpose pad linspace eye zeros ones fill zeros_like ones_like range cast norm
    clip_by_norm clip_by_value clip_by_global_norm reduce_sum reduce_mean reduce_max
    reduce_min reduce_prod reduce_logsumexp exp sqrt square abs sign sin cos tan tanh
    sigmoid pow add subtract multiply divide maximum minimum where concat stack unstack
    split squeeze expand_dims tile repeat gather one_hot boolean_mask argmax argmin slice
    identity shape size rank equal not_equal greater greater_equal less less_equal
    logical_and logical_or logical_not round floor
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    complex64 complex128 string half double device errors math nn linalg random image
    constant_initializer zeros_initializer ones_initializer random_normal_initializer
    random_uniform_initializer
""".split()


@pytest.mark.parametrize("name", TOP)
def test_a_name_of_tensorflow_is_at_the_top(name):
    assert hasattr(tw, name)


@pytest.mark.parametrize(
    ("namespace", "names"),
    [
        (
            "nn",
            "relu elu leaky_relu sigmoid softmax log_softmax softplus tanh moments",
        ),
        ("nn", "softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits"),
        (
            "math",
            "log exp sin sigmoid reduce_sum reduce_variance reduce_std real imag conj",
        ),
        ("linalg", "matmul solve inv norm eye trace einsum adjoint matvec"),
        ("random", "normal uniform truncated_normal set_seed shuffle Generator"),
        ("image", "adjust_contrast"),
    ],
)
def test_a_namespace_has_tensorflows_names(namespace, names):
    space = getattr(tw, namespace)
    assert [n for n in names.split() if not hasattr(space, n)] == []


def test_an_alias_is_the_same_object():
    assert tw.math.exp is tw.exp and tw.nn.sigmoid is tw.sigmoid is tw.math.sigmoid
    assert tw.linalg.matmul is tw.matmul and tw.math.reduce_sum is tw.reduce_sum
    assert tw.linalg.norm is tw.norm


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert tw.__version__ == version("tapewright")
