"""ONNX' own tests of ops: every case of an op that is translated gives the recorded outputs.

All cases run a second time with all sizes left open. What is refused is listed here.
"""

import importlib
import pkgutil
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import SavingError
from tapewright.core.interpreters import use_interpreters

onnx = pytest.importorskip("onnx")
node_cases = importlib.import_module("onnx.backend.test.case.node")

# Ops that are refused, by name.
REFUSED = set(
    """
    Bernoulli Col2Im DFT DeformConv GridSample ImageDecoder MaxRoiPool MaxUnpool
    MelWeightMatrix Multinomial NonMaxSuppression Optional OptionalGetElement
    OptionalHasElement RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike RegexFullMatch RoiAlign STFT SequenceAt SequenceConstruct
    SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap
    ConcatFromSequence SplitToSequence StringConcat StringNormalizer StringSplit
    TensorScatter TfIdfVectorizer
    """.split()
)
# Cases of translated ops with options that are refused, in an opset or at the first call.
REFUSED_CASES = {
    "test_lstm_with_peepholes",
    "test_maxpool_with_argmax_2d_precomputed_pads",
    "test_maxpool_with_argmax_2d_precomputed_strides",
    "test_scan_sum",  # of opset 8
}
TRAINING = "test_training_dropout"  # but for those with ratio 0, refused at the call
# Of ONNX' DataType: bfloat16. Floats of 8 bits and integers of 4 bits follow.
LAST_DTYPE = 16


def modules():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted([m.name for m in pkgutil.iter_modules(node_cases.__path__)])


_cases = {}


def cases_of(module):
    """Return the cases that the import of a module of ONNX' tests adds."""
    if module not in _cases:
        known = len(node_cases._NodeTestCases)
        with warnings.catch_warnings(), use_interpreters(()):
            warnings.simplefilter("ignore")
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
        _cases[module] = node_cases._NodeTestCases[known:]
    return _cases[module]


def is_refused(case):
    """Return whether a case is one that `load` rejects, from the model alone."""
    model = case.model
    opsets = {o.domain: o.version for o in model.opset_import}
    graphs = [model.graph]
    for graph in graphs:
        for node in graph.node:
            if node.op_type in REFUSED or node.domain:
                return True
            if any(
                each.name == "to" and each.i > LAST_DTYPE for each in node.attribute
            ):
                return True
            graphs += [each.g for each in node.attribute if each.HasField("g")]
    types = [value.type for value in [*model.graph.input, *model.graph.output]]
    if any(not t.HasField("tensor_type") for t in types):
        return True
    if any(t.tensor_type.elem_type > LAST_DTYPE for t in types):
        return True
    return case.name in REFUSED_CASES or not 7 <= opsets.get("", 0) <= 28


def as_array(x):
    return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def compare(found, expected, case):
    assert found.dtype.name == expected.dtype.name or expected.dtype.kind in "OU"
    assert found.shape == expected.shape
    if expected.dtype.kind in "OU":
        assert found.astype("U").tolist() == expected.astype("U").tolist()
        return
    half = expected.dtype.name in ("float16", "bfloat16")
    if half:
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    tolerance = (2e-2, 2e-2) if half else (case.rtol, case.atol)
    np.testing.assert_allclose(found, expected, *tolerance)


def check(case, path):
    """Load a case and compare its outputs; it must be refused if the tables say so."""
    onnx.save(case.model, path)
    if is_refused(case):
        with pytest.raises(SavingError):
            tw.onnx.load(path)
        return
    loaded = tw.onnx.load(path)
    for inputs, outputs in case.data_sets:
        inputs = [as_array(x) for x in inputs]
        if case.name.startswith(TRAINING) and "zero_ratio" not in case.name:
            with pytest.raises(ValueError, match="training_mode"):
                loaded(*inputs)
            continue
        found = loaded(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        for each, expected in zip(found, outputs, strict=True):
            compare(each.numpy(), np.asarray(as_array(expected)), case)


def with_open_sizes(model):
    """Return a model whose inputs and outputs may have any sizes."""
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    for value in [*opened.graph.input, *opened.graph.output]:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"{value.name}_{i}"
    return opened


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("module", modules())
def test_the_cases_of_onnx_give_their_outputs(module, tmp_path):
    for case in cases_of(module):
        try:
            check(case, tmp_path / "model.onnx")
        except BaseException as error:
            error.add_note(f"in the case {case.name}")
            raise


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("module", modules())
def test_the_cases_of_onnx_give_their_outputs_if_sizes_are_open(module, tmp_path):
    for case in cases_of(module):
        if not is_refused(case):
            opened = type(case)(**{**vars(case), "model": with_open_sizes(case.model)})
            try:
                check(opened, tmp_path / "model.onnx")
            except BaseException as error:
                error.add_note(f"in the case {case.name}, with open sizes")
                raise
