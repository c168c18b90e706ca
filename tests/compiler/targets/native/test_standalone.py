import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.pipeline import stages
from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.jit.host import TARGETS
from tapewright.compiler.targets.native.products.contractions import ContractionKernel
from tapewright.compiler.targets.native.standalone import STANDALONE, standalone


def compiled(function, *args, host=None):
    """The `Standalone` of a function of tensors."""
    concrete = tw.function(function).get_concrete_function(*map(tw.constant, args))
    return standalone(stages(concrete.graph, STANDALONE), host or engine.this_cpu())


def adam_step(size):
    v, rule = tw.Variable(np.ones(size, "f4")), tw.optimizers.Adam()
    rule.build([v])

    def step(g):
        rule.apply_gradients([(g, v)])

    return step


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_thin_products_are_contractions_instead_of_calls_of_blas(rows):
    x, y = np.ones((rows, 128), "f4"), np.ones((128, 10), "f4")
    (made,) = compiled(lambda x, y: x @ y, x, y).program.instructions
    assert type(made) is ContractionKernel


def test_coefficients_are_computed_once_and_not_in_each_block():
    code = compiled(adam_step(1 << 16), np.ones(1 << 16, "f4"))
    nests = [each for each in code.program.instructions if type(each) is LoopNest]
    powers = [each for each in nests if "power" in str(each.body)]
    assert powers and all(a.size == 1 for each in powers for a in each.outputs)


def test_instructions_that_fail_come_before_variables_change():
    v, rows = [tw.Variable(np.ones((1 << 14, 2), "f4")) for _ in range(2)]

    def function(i):
        v.assign(v * 2)
        return tw.gather(rows, i)

    code = compiled(function, np.zeros(3, "i4"))
    places = [code.program.instructions.index(each) for each in code.fallible]
    changing = [code.program.instructions.index(each) for each in code.program.in_place]
    assert places and changing and max(places) < min(changing)


@pytest.mark.parametrize("target", TARGETS)
def test_code_is_for_the_vectors_of_the_target(target):
    x = np.ones((64, 64), "f4")
    code = compiled(lambda x: x @ x, x, host=TARGETS[target])
    text = "\n".join(text for text, _ in code.modules)
    lanes = TARGETS[target].vector_registers[0] // 4
    assert f"<{lanes} x float>" in text and f"<{2 * lanes} x float>" not in text


def test_one_object_file_has_only_the_exported_names():
    modules = [
        ("define i32 @inner() { ret i32 7 }\ndefine i32 @unused() { ret i32 1 }", 0),
        ("declare i32 @inner()\ndefine i32 @outer() {\n"
         "  %x = call i32 @inner()\n  ret i32 %x\n}", 0),
        ("declare i32 @elsewhere()\ndefine i32 @other() {\n"
         "  %x = call i32 @elsewhere()\n  ret i32 %x\n}", 2),
    ]  # fmt: skip
    code, missing = engine.joined_object_code(modules, ["outer", "other"])
    assert missing == ["elsewhere"]
    assert b"outer" in code and b"unused" not in code
    with pytest.raises(RuntimeError, match="LLVM refuses module 'library'"):
        engine.joined_object_code([*modules, ("define nonsense", 0)], ["outer"])
