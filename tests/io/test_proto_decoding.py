"""`tw.io.decode_proto`: descriptors of protoc, values and defaults of TensorFlow."""

import pytest

import tapewright as tw

# The descriptor set of demo.Person, a message of proto2, as protobuf serializes it.
PERSON = (
    b'\n\xa0\x02\n\x0cperson.proto\x12\x04demo"\x81\x02\n\x06Person\x12\x0f\n\x04name\x18\x01'
    b" \x01(\t:\x01?\x12\x0e\n\x02id\x18\x02 \x01(\x05:\x02-1\x12\r\n\x05email\x18\x03 \x03(\t"
    b"\x12\r\n\x05score\x18\x04 \x03(\x02\x12\x0c\n\x04sint\x18\x05 \x03(\x12\x12\r\n\x05fixed"
    b"\x18\x06 \x01(\x07\x12\x12\n\x04flag\x18\x07 \x01(\x08:\x04true\x12\x11\n\x03raw\x18\x08"
    b" \x01(\x0c:\x04\\377\x12!\n\x05color\x18\t \x01(\x0e2\x12.demo.Person.Color\x12!\n\x05"
    b"inner\x18\n \x03(\x0b2\x12.demo.Person.Inner\x1a\x12\n\x05Inner\x12\t\n\x01x\x18\x01 \x01"
    b'(\x04"\x1a\n\x05Color\x12\x08\n\x04BLUE\x10\x05\x12\x07\n\x03RED\x10\x00b\x06proto2'
)
AL = (
    b'\n\x02Al\x10{\x1a\x01a\x1a\x02bc"\x08\x00\x00\xc0?\x00\x00\x00@%\x00\x00@@*\x02\x03\x04'
    b"5\x07\x00\x00\x008\x00B\x01\x00H\x00R\x02\x08\t"
)
# The dtype that is asked for, and what TensorFlow gives for Al and an empty message.
EXPECTED = {
    "name": ("string", [[b"Al"], [b"?"]]),
    "id": ("int64", [[123], [-1]]),
    "email": ("string", [[b"a", b"bc"], [b"", b""]]),
    "score": ("float64", [[1.5, 2.0, 3.0], [0.0, 0.0, 0.0]]),
    "sint": ("int64", [[-2, 2], [0, 0]]),
    "fixed": ("uint32", [[7], [0]]),
    "flag": ("bool", [[False], [True]]),
    "raw": ("string", [[b"\x00"], [b"\xff"]]),
    "color": ("int32", [[0], [5]]),
    "inner": ("string", [[b"\x08\t"], [b""]]),
}


def decode(messages, names=("id",), types=("int32",), **options):
    options = {"descriptor_source": b"bytes://" + PERSON} | options
    return tw.io.decode_proto(messages, "demo.Person", names, types, **options)


def test_values_and_defaults_are_those_of_tensorflow(tmp_path):
    file = tmp_path / "person.desc"
    file.write_bytes(PERSON)
    types = [dtype for dtype, _ in EXPECTED.values()]
    for source in str(file), file, b"bytes://" + PERSON:
        result = decode([AL, b""], [*EXPECTED], types, descriptor_source=source)
        assert result.sizes.numpy().tolist() == [
            [1, 1, 2, 3, 2, 1, 1, 1, 1, 1],
            [0] * 10,
        ]
        for value, (dtype, expected) in zip(result.values, EXPECTED.values()):
            assert value.dtype == dtype and value.numpy().tolist() == expected


def test_messages_of_examples_are_known():
    features = tw.train.FeatureList(feature=[tw.train.Feature()]).SerializeToString()
    sizes, values = tw.io.decode_proto(
        [[features], [b""]], "tensorflow.FeatureList", ["feature"], [tw.string]
    )
    assert sizes.numpy().tolist() == [[[1]], [[0]]]
    assert values[0].numpy().tolist() == [[[b""]], [[b""]]]


def test_the_last_one_of_a_single_value_counts_and_data_sets_decode():
    assert decode(b"\x10\x03\x10\x04").values[0].numpy().tolist() == [4]
    data = tw.data.Dataset.from_tensor_slices([AL, b""])
    ids = data.map(lambda message: decode(message).values[0])
    assert [x.numpy().tolist() for x in ids] == [[123], [-1]]
    function = tw.function(lambda messages: decode(messages).values[0])
    assert function([AL, AL]).numpy().tolist() == [[123], [123]]


@pytest.mark.parametrize("options, message", [
    ({"types": ["float32"]}, "int32 or int64 for 'id' of the type int32, got float32"),
    ({"names": ["nope"]}, "demo.Person has no field 'nope'; .*'name'"),
    ({"names": ["id", "id"], "types": ["int32"] * 2}, "must not contain duplicates"),
    ({"types": []}, "a dtype for each of the 1 field_names, got 0"),
    ({"descriptor_source": "local://"}, "no message_type 'demo.Person'; .*Example"),
    ({"descriptor_source": "/nowhere"}, "descriptor_source must be a file of protoc"),
    ({"descriptor_source": b"bytes://\x0a\x05"}, "not a protocol buffer"),
    ({"descriptor_source": b"bytes://" + PERSON.replace(b":\x02-1", b":\x02x1")},
     "'x1' is not a valid default of type int32"),
    ({"message_format": "text"}, "message_format must be one of 'binary'"),
    ({"sanitize": True}, "sanitize must be one of False"),
])  # fmt: skip
def test_what_cannot_be_decoded_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        decode(AL, **options)


def test_other_bytes_are_lost_data():
    with pytest.raises(tw.errors.DataLossError, match="longer than the rest"):
        decode(b"\x0a\x05")


def test_messages_cannot_be_nested_without_end():
    def field(number, value):
        size = len(value)
        head = [size] if size < 128 else [size & 127 | 128, size >> 7]
        return bytes([number << 3 | 2, *head]) + value

    nested = b""
    for _ in range(70):
        nested = field(3, nested)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        decode(AL, descriptor_source=b"bytes://" + field(1, field(4, nested)))
