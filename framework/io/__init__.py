"""`tw.io`: files, records, serialized examples and tensors, under the names of ``tf.io``."""

from . import gfile as gfile
from .decoding import decode_base64, decode_csv, decode_raw, encode_base64
from .files import matching_files, read_file, write_file
from .parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_single_example,
    parse_single_sequence_example,
)
from .record_writer import TFRecordOptions, TFRecordWriter
from .tensor_protos import parse_tensor, serialize_tensor

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_base64",
    "decode_csv",
    "decode_raw",
    "encode_base64",
    "gfile",
    "matching_files",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
    "write_file",
]
