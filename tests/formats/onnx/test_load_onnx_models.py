"""Models of ONNX' own tests, which old versions of PyTorch and Caffe2 have written.

Their opset is that of their time: a converter of onnx brings them to one that is read.
"""

from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import SavingError

onnx = pytest.importorskip("onnx")
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
KINDS = "pytorch-converted", "pytorch-operator", "simple"
CASES = [p for kind in KINDS for p in sorted((DATA / kind).glob("*")) if p.is_dir()]
# Training, strings and lists of tensors.
REFUSED = "gradient_of", "strnorm", "sequence_model"
# The converter of onnx leaves slopes in a shape that no longer broadcasts.
UNCONVERTED = "PReLU_1d_m", "PReLU_2d_m", "PReLU_3d_m"


def arrays(paths):
    contents = [path.read_bytes() for path in sorted(paths)]
    tensors = [onnx.TensorProto.FromString(content) for content in contents]
    return [onnx.numpy_helper.to_array(tensor) for tensor in tensors]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_model_of_onnx_gives_its_outputs(case, tmp_path):
    model = onnx.load(case / "model.onnx")
    if any(part in case.name for part in UNCONVERTED):
        pytest.skip("onnx converts it wrongly")
    if model.opset_import[0].version < 7:
        model = onnx.version_converter.convert_version(model, 13)
        model.ir_version = 8
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    if any(part in case.name for part in REFUSED):
        with pytest.raises(SavingError, match="does not translate"):
            tw.onnx.load(path)
        return
    loaded = tw.onnx.load(path)
    for folder in case.glob("test_data_set_*"):
        inputs = arrays(folder.glob("input_*.pb"))[: len(loaded.input_names)]
        found, expected = loaded(*inputs), arrays(folder.glob("output_*.pb"))
        found = found if isinstance(found, tuple) else (found,)
        for y, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(y.numpy(), wanted, 1e-3, 1e-5)
