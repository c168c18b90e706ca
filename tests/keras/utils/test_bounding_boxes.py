"""`keras.utils.bounding_boxes`, beside recordings of Keras."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.utils import bounding_boxes

REFERENCE = Path(__file__).parents[2] / "layers" / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_augmentation", REFERENCE / "record_augmentation.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "augmentation.npz", allow_pickle=False))
BOX = np.float32([[1, 2, 3, 4]])


def test_functions_of_boxes_are_those_of_keras():
    wrong = []
    for name, x in record.box_functions(bounding_boxes, *record.some_boxes()):
        keras, x = KERAS[f"boxes|{name}"], np.array(x)
        if x.shape != keras.shape or not np.allclose(x, keras, rtol=1e-5, atol=1e-5):
            wrong.append(name)
    assert not wrong


def test_deltas_lead_back_to_their_boxes():
    anchors, boxes = record.some_boxes()[0]
    deltas = bounding_boxes.encode_box_to_deltas(anchors, boxes, "xyxy", "xyxy")
    again = bounding_boxes.decode_deltas_to_boxes(
        {"small": anchors}, {"small": deltas}, "xyxy", "xyxy"
    )
    np.testing.assert_allclose(again["small"], boxes, rtol=1e-5)


def test_a_dict_stays_as_it_was():
    given = {"boxes": BOX, "labels": [7]}
    moved = bounding_boxes.convert_format(given, "xyxy", "YXYX")
    assert moved["boxes"].numpy().tolist() == [[2, 1, 4, 3]] and moved["labels"] == [7]
    assert given["boxes"] is BOX


def test_relative_boxes_have_a_complete_iou_as_well():
    size = {"image_shape": (10, 10, 3)}
    found = bounding_boxes.compute_ciou(BOX / 10, BOX / 5, "rel_xyxy", **size)
    wanted = bounding_boxes.compute_ciou(BOX, 2 * BOX, "xyxy")
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_gradients_pass_and_traced_functions_do_the_same():
    boxes, others = map(tw.constant, record.some_boxes()[0])
    with tw.GradientTape() as tape:
        tape.watch(boxes)
        score = bounding_boxes.compute_ciou(boxes, others, "xyxy")
    assert np.isfinite(tape.gradient(score, boxes)).all()
    call = tw.function(lambda a, b: bounding_boxes.compute_ciou(a, b, "xyxy"))
    np.testing.assert_allclose(call(boxes, others), score, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda b: b.convert_format(BOX, "xy", "xyxy"), "source .*'xyxy'.*got 'xy'"),
        (lambda b: b.convert_format(BOX, "xyxy", "rel_xyxy", 3), "height and width.*3"),
        (lambda b: b.convert_format(BOX[:, :3], "xyxy", "xywh"), "boxes must be"),
        (lambda b: b.clip_to_image_size({"boxes": BOX}, 3), "height and width.*3 and"),
        (
            lambda b: b.encode_box_to_deltas(BOX, BOX, "xyxy", "xyxy", "xywh"),
            "encoding_format .*'center_xywh'.*got 'xywh'",
        ),
        (
            lambda b: b.encode_box_to_deltas(
                BOX, BOX, "xyxy", "xyxy", variance=[1.0, 1.0]
            ),
            "variance must be four",
        ),
        (lambda b: b.compute_iou(BOX[0], BOX, "xyxy"), "boxes1 must be"),
    ],
)
def test_wrong_arguments_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call(bounding_boxes)


def test_changes_are_of_one_format():
    for call in (bounding_boxes.crop, bounding_boxes.pad):
        with pytest.raises(NotImplementedError, match="must be 'xyxy', got 'xywh'"):
            call(BOX, 1, 1, 2, 2, bounding_box_format="xywh")
