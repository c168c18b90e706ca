"""Classes take Keras' arguments, in its order and with its defaults, as recorded."""

import inspect
import json
from pathlib import Path

import tapewright as tw
from tapewright.serialization.constructor_arguments import constructor_arguments

RECORDED = json.loads(
    (Path(__file__).parent / "reference" / "signatures.json").read_text()
)
# Of what does not exist here, they are refused unless they ask for nothing.
REFUSED = {
    "gptq_unpacked_column_size", "lora_alpha", "lora_rank", "quantization_config",
}  # fmt: skip


def find(module, name):
    found = tw.keras
    for part in module.split("."):
        found = getattr(found, part)
    return getattr(found, name, None)


def same(default, wanted):
    """Keras writes one number for each axis where here one stands for all."""
    if isinstance(default, tuple):
        default = list(map(list, default)) if default and isinstance(
            default[0], tuple) else list(default)  # fmt: skip
    if default == wanted and type(default) is type(wanted):
        return True
    if isinstance(wanted, list) and not isinstance(default, list):
        return all(same(default, each) for each in wanted)
    return default == wanted and isinstance(default, (int, float))


# Classes of Keras that are not here. All others are: a class that goes missing fails.
LACKING = {
    "callbacks": """
        OrbaxCheckpoint
    """,
    "layers": """
        FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper
    """,
}
PRESENT = {
    (module, name): wanted
    for module, classes in RECORDED.items()
    if module != "keras"  # which says by what version these were recorded
    for name, wanted in classes.items()
    if name not in LACKING.get(module, "").split()
}


def differences(cls, wanted):
    """What differs between the arguments of a class and those recorded."""
    if cls is None:
        yield "is missing"
        return
    parameters = inspect.signature(cls.__init__).parameters.values()
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    ours = [p for p in parameters if p.kind not in kinds][1:]
    by_name = {name: (name, *default) for name, *default in wanted}
    named = [p for p in ours if p.kind is p.KEYWORD_ONLY and p.name in by_name]
    pairs = [*zip([p for p in ours if p.kind is not p.KEYWORD_ONLY], wanted)]
    pairs += [(p, by_name[p.name]) for p in named]
    for mine, (name, *default) in pairs:
        if mine.name != name:
            yield f"takes {mine.name!r} where Keras takes {name!r}"
        elif default and not same(mine.default, default[0]):
            yield f"{name} is {mine.default!r} by default, not {default[0]!r}"
        elif not default and mine.default is not mine.empty:
            yield f"{name} must be given, and is {mine.default!r} by default"
    taken = {p.name for p in ours} | set(constructor_arguments(cls))
    if missing := {name for name, *_ in wanted} - REFUSED - taken:
        yield f"does not take {sorted(missing)}"


def test_what_is_lacking_is_not_there():
    for module, names in LACKING.items():
        assert not [name for name in names.split() if find(module, name) is not None]


def test_arguments_and_defaults_are_those_of_keras():
    found = [
        f"{module}.{name} {difference}"
        for (module, name), wanted in PRESENT.items()
        for difference in differences(find(module, name), wanted)
    ]
    assert not found, "\n".join(found)
