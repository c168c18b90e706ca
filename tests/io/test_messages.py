"""Examples as bytes and text: those of TensorFlow, and hostile ones."""

import pickle
from contextlib import suppress

import numpy as np
import pytest

import tapewright as tw
from tapewright.train import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)

# SerializeToString(deterministic=True) of TensorFlow, for the example below.
WRITTEN = (
    b"\nM\n\x11\n\x01b\x12\x0c\n\n\n\x02a\x00\n\x04\xff\"q'\n\x15\n\x01f\x12\x10\x12\x0e"
    b"\n\x0c\x00\x00\xc0?\x00\x00\x00\xc0\x95\xbf\xd63\n\x1a\n\x01i\x12\x15\x1a\x13\n\x11"
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x80\x80\x80\x80\x80 \n\x05\n\x01n\x12\x00"
)


def example():
    features = {
        "b": Feature(bytes_list=BytesList(value=[b"a\0", b"\xff\"q'"])),
        "f": Feature(float_list=FloatList(value=[1.5, -2, 1e-7])),
        "i": Feature(int64_list=Int64List(value=[-1, 0, 2**40])),
        "n": Feature(),
    }
    return Example(features=Features(feature=features))


def test_the_bytes_are_those_of_tensorflow():
    assert example().SerializeToString() == WRITTEN
    assert Example.FromString(WRITTEN) == example()
    assert pickle.loads(pickle.dumps(example())) == example()


def test_the_text_is_that_of_protocol_buffers():
    assert repr(example().features.feature["b"]) == (
        'bytes_list {\n  value: "a\\000"\n  value: "\\377\\"q\\\'"\n}\n'
    )
    numbers = FloatList(value=[0.1, 3e38, -np.inf, 123456.789, 1e-5, 1e39])
    shown = [line.removeprefix("value: ") for line in repr(numbers).split()[1::2]]
    assert shown == ["0.1", "3e+38", "-inf", "123456.789", "1e-05", "inf"]
    assert 'feature {\n    key: "n"\n    value {\n    }\n  }\n' in repr(example())
    numbers = FeatureList(feature=[Feature(int64_list=Int64List(value=[7])), Feature()])
    assert repr(numbers) == (
        "feature {\n  int64_list {\n    value: 7\n  }\n}\nfeature {\n}\n"
    )


def test_the_parts_of_a_message_are_set_as_they_are_changed():
    feature = Feature()
    assert feature.int64_list.value == [] and feature.WhichOneof("kind") is None
    feature.int64_list.value.append(1)
    assert feature.WhichOneof("kind") == "int64_list"
    feature.float_list.value.extend([2])
    assert feature.WhichOneof("kind") == "float_list"
    assert not feature.HasField("int64_list") and feature.int64_list.value == []
    sequence = SequenceExample()
    assert sequence.SerializeToString() == b""
    sequence.feature_lists.feature_list["s"].feature.add().int64_list.value.append(1)
    assert sequence.HasField("feature_lists") and not sequence.HasField("context")
    again = SequenceExample.FromString(sequence.SerializeToString())
    assert again.feature_lists.feature_list["s"].feature[0].int64_list.value == [1]


def test_lists_of_values_change_as_those_of_python():
    feature = Feature()
    values = feature.int64_list.value
    values.insert(0, 1)
    assert feature.WhichOneof("kind") == "int64_list"
    values += [3]
    values[1:] = [2, 5]
    values[0] = 0
    assert feature.int64_list.value == [0, 2, 5]
    for call in (
        lambda: values.insert(0, 1.5),
        lambda: values.__setitem__(0, "1"),
        lambda: values.__setitem__(slice(1), [1, "1"]),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(AttributeError, match="cannot be assigned; use extend"):
        feature.int64_list.value = [1]
    assert values == [0, 2, 5]


def test_messages_are_copied_compared_measured_and_cleared():
    copy = Example()
    copy.CopyFrom(example())
    assert copy == example() and copy != copy.features
    assert copy.ByteSize() == len(WRITTEN)
    with pytest.raises(TypeError, match="expects Example, got Features"):
        copy.CopyFrom(copy.features)
    sequence = SequenceExample()
    sequence.feature_lists.feature_list["s"].feature.add()
    for message in (copy, sequence, BytesList(value=[b"a"]), FloatList(value=[1])):
        assert message.ByteSize()
        message.Clear()
        assert message == type(message)() and not message.ByteSize()
    assert not copy.HasField("features")


def test_names_that_no_message_has_are_refused():
    for call in (
        lambda: Feature().WhichOneof("sort"),
        lambda: Feature().HasField("list"),
        lambda: Example().HasField("context"),
    ):
        with pytest.raises(ValueError, match="has no (oneof|field) '"):
            call()
    with pytest.raises(TypeError, match="name must be a str, got int"):
        Example().features.feature[3]
    with pytest.raises(tw.errors.InvalidArgumentError, match="is not UTF-8"):
        Example.FromString(WRITTEN.replace(b"\n\x01b", b"\n\x01\xff"))


def test_unpacked_numbers_and_unknown_fields_are_read():
    unpacked = Feature.FromString(b"\x1a\x04\x08\x01\x08\x02" + b"\x7a\x01x")
    assert unpacked.int64_list.value == [1, 2]
    assert Feature.FromString(b"\x12\x05\x0d\0\0\x80?").float_list.value == [1.0]


def test_other_values_are_refused():
    for call in (
        lambda: BytesList(value=["text"]),
        lambda: Int64List(value=[1.0]),
        lambda: FloatList(value=["1"]),
        lambda: Feature(bytes_list=[b"a"]),
        lambda: Features(feature={"a": BytesList()}),
        lambda: FeatureList(feature=[Features()]),
        lambda: Example.FromString("text"),
    ):
        with pytest.raises(TypeError):
            call()
    feature = Feature(int64_list=Int64List(value=[1]))
    for call in (
        lambda entries: entries.update({"a": feature}),
        lambda entries: entries.update(a=feature),
        lambda entries: entries.setdefault("a", feature),
        lambda entries: entries.__ior__({"a": feature}),
        lambda entries: entries.__setitem__("a", feature),
    ):
        with pytest.raises(ValueError, match="CopyFrom"):
            call(Example().features.feature)
    with pytest.raises(ValueError, match="one of bytes_list"):
        Feature(int64_list=Int64List(value=[1]), float_list=FloatList())
    with pytest.raises(ValueError, match="64 bits"):
        Int64List(value=[2**63])


def test_changed_bytes_give_a_message_or_an_error():
    rng = np.random.default_rng(0)
    spec = {"f": tw.io.FixedLenFeature([3], "float32")}
    for _ in range(400):
        data = bytearray(WRITTEN)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        data = bytes(data[: rng.integers(len(data) + 1)])
        with suppress(tw.errors.InvalidArgumentError):
            repr(Example.FromString(data))
        with suppress(tw.errors.InvalidArgumentError):
            tw.io.parse_single_example(data, spec)
