"""Export a model for inference: `Model.export`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tapewright.compiler.function.function import Function
from tapewright.core.nest import flatten, map_structure
from tapewright.core.tensor import TensorSpec
from tapewright.formats.onnx.save import save
from tapewright.layers.base.input_spec import InputSpec


def export_model(
    model: Any,
    filepath: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    verbose: bool | None = None,
    input_signature: Sequence[Any] | None = None,
) -> None:
    """Write a model as an ONNX file, see `Model.export`."""
    path = os.fspath(filepath)
    if format is None and path.endswith(".onnx"):
        format = "onnx"  # noqa: A001
    if format != "onnx":
        raise NotImplementedError(
            f"export: format must be 'onnx', got {format!r} for {path!r}; "
            "tw.saved_model.save(model, path) saves the model as a function that "
            "tw.saved_model.load runs without its code; model.save(path) writes a .keras "
            "file that Keras can load and export"
        )
    if input_signature is None:
        input_signature = [_specs(model)]
    if not isinstance(input_signature, (list, tuple)):
        input_signature = [input_signature]
    input_signature = map_structure(_as_spec, list(input_signature))

    def call(*args):
        return model(*args, training=False)

    save(Function(call), input_signature, path, _output_names(model))
    if verbose:
        specs = [f"{s.name or ''} {s!r}" for s in flatten(input_signature)]
        print(f"exported {model.name} to {path}; inputs: {', '.join(specs)}")


def _specs(model):
    """Return the inputs of a model as specs with their names."""
    try:
        known = model.input
    except AttributeError as error:
        raise ValueError(
            f"export: the inputs of {model.name!r} are not known: pass input_signature, "
            "such as [tw.TensorSpec([None, 28, 28, 1])]"
        ) from error
    return map_structure(lambda x: TensorSpec(x.shape, x.dtype, x.name), known)


def _as_spec(x):
    """Return a `TensorSpec` for one, or for Keras' ``InputSpec``."""
    if isinstance(x, InputSpec):
        return TensorSpec(x.shape, x.dtype or "float32")
    return x


def _output_names(model):
    """Return the output names; None unless they are unique and differ from the inputs."""
    names = model.output_names
    if names is None:
        return None
    known = [*names, *getattr(model, "input_names", ())]  # which may not be known
    return names if len(set(known)) == len(known) else None
