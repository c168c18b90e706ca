"""The kinds of steps that random programs are made of: one expression each."""

import dataclasses
import re

__all__ = ["KINDS", "Kind", "NUMBERS"]

NUMBERS = ["0.5", "2.0", "-1.0", "0.9", "1.0", "0.0", "-0.25", "3.0"]

# A head is a signature and a weight, shared by the expressions below it. ``F`` is a
# floating dtype, ``N`` a number's, ``A`` any, each the same wherever it stands; ``f d i
# b`` are float32, float64, int32, bool. Letters after it are sizes, ``*`` is any shape,
# ``(a*b)`` a size, ``R`` and ``C`` those of the program. ``@`` asks for a variable. In an
# expression ``{0}`` is an operand, ``{c}`` a number of the above, ``{n0}`` the first size
# of an operand, ``{shape0}`` and ``{spec0}`` what their names say. ``trap`` is an input
# that is 0 in calls that shall raise.
TABLE = """
F* -> F* 8
    tw.tanh({0}); tw.sin({0}); tw.cos({0}); tw.exp(-tw.abs({0})); tw.nn.relu({0})
    tw.sqrt(tw.abs({0})); tw.sigmoid({0}); tw.math.softplus({0}); tw.floor({0})
    tw.math.log1p(tw.abs({0})); tw.sign({0}); tw.nn.elu({0}); tw.nn.leaky_relu({0})
    tw.math.erf({0}); tw.nn.gelu({0}); tw.round({0}); tw.math.rsqrt(tw.abs({0}) + 0.5)
    tw.math.reciprocal_no_nan({0}); tw.math.log({0}); tw.atan({0}); tw.expm1({0})
    tw.where(tw.is_nan({0}), tw.zeros_like({0}), {0})
F* -> F* 5
    {c} * {0}; {0} * {c}; {0} / {c}; {0} + {c}; {c} - {0}; {0} - {c}; {0} ** 2.0
    {0} ** {c}; tw.maximum({0}, {c}); tw.clip_by_value({0}, -0.5, 0.5)
F* F* -> F* 7
    {c} * {0} + {1}; {c} * {0} - {1}; {1} - {c} * {0}; {1} + {0} * {c}; {0} / {1}
    {0} * {c} - {1} * 0.5; {c} * ({0} + {0}) - {1}; tw.math.divide_no_nan({0}, {1})
    tw.math.multiply_no_nan({0}, {1}); tw.atan2({0}, {1}); {0} * tw.exp(-tw.square({1}))
    tw.math.xlogy({0}, tw.abs({1}))
F* F* -> F* 4
    {c} * {0} - tw.sin({1}); tw.sin({1}) - {c} * {0}; {c} * {0} + tw.tanh({1})
    tw.tanh({1}) + {0} * {c}; {0} / 2.0 - tw.tanh({1}); ({0} + 1.0) - 2.0 * tw.sin({1})
    {c} * tw.cos({0}) - {c} * tw.sin({1}); 0.0 * {0} + tw.tanh({1})
N* -> N* 3
    -{0}; tw.abs({0}); tw.square({0}); {0} + {0}; {0} * {0}
N* N* -> N* 7
    {0} + {1}; {0} - {1}; {0} * {1}; tw.maximum({0}, {1}); tw.minimum({0}, {1})
    tw.add_n([{0}, {1}, {0}]); tw.math.squared_difference({0}, {1})
A* -> A* 1
    tw.identity({0}); tw.stop_gradient({0}); tw.convert_to_tensor({0})
Fab Fb -> Fab 3
    {0} + {1}; {0} * {1}; {1} - {0}; {0} / (tw.abs({1}) + 1.0); tw.nn.bias_add({0}, {1})
F* F -> F* 2
    {0} + {1}; {0} * {1}; {1} - {0}
A* A* -> b* 1
    tw.equal({0}, {1}); tw.not_equal({0}, {1})
N* N* -> b* 1
    {0} > {1}; {0} <= {1}
F* -> b* 1
    {0} > {c}; tw.is_nan({0})
b* b* -> b* 1
    tw.logical_and({0}, {1}); tw.logical_xor({0}, {1}); tw.logical_not({0})
b* A* A* -> A* 1.5
    tw.where({0}, {1}, {2})
A* -> f* 1
    tw.cast({0}, "float32")
A* -> d* 1
    tw.cast({0}, "float64")
N* -> i* 1
    tw.cast(tw.clip_by_value({0}, 0, 9), "int32")
i* i* -> i* 1
    {0} // ({1} * {1} + 1); {0} % ({1} * {1} + 1); tw.bitwise.bitwise_xor({0}, {1})
i* -> i* 1
    {0} * 3 + 1; {0} - 2

F* -> F 3
    tw.reduce_sum({0}); tw.reduce_mean({0}); tw.reduce_max({0}); tw.reduce_min({0})
    tw.reduce_sum(tw.square({0})); tw.reduce_sum({0} * {0}); tw.norm({0})
    tw.reduce_logsumexp({0})
F* F* -> F* 0.5
    tw.clip_by_global_norm([{0}, {1}], 1.0)[0][1]
F* F* -> F 1
    tw.linalg.global_norm([{0}, {1}])
F* F* -> F 1
    tw.reduce_sum({0} * {1}); tw.reduce_mean(tw.square({0} - {1}))
Nab -> Nb 1
    tw.reduce_sum({0}, 0); tw.reduce_max({0}, 0); {0}[0]; {0}[-1]
Nab -> Na 1
    tw.reduce_sum({0}, -1); tw.reduce_min({0}, -1); {0}[:, 0]
Fab -> Fa 1
    tw.reduce_mean({0}, 1); tw.reduce_logsumexp({0}, 1); tw.math.reduce_variance({0}, 1)
Nab -> ib 1
    tw.argmax({0}, 0, output_type="int32")
Nab -> Nab 0.7
    tw.cumsum({0}, 0); tw.cumsum({0}, 1, reverse=True); tw.sort({0})
Fab -> Fab 1.5
    tw.nn.softmax({0}); tw.nn.log_softmax({0}); tw.nn.dropout({0}, 0.5)
    {0} - tw.reduce_mean({0}, 1, keepdims=True); {0} / tw.reduce_sum({0}, 0, keepdims=True)

Aab -> Aba 1.5
    tw.transpose({0})
Aab -> A(a*b) 1
    tw.reshape({0}, [-1])
A(R*C) -> ARC 2
    tw.reshape({0}, [R, C])
A(R*C) -> ACR 1
    tw.reshape({0}, [C, R])
Aab -> Aab 2
    {0}[::-1]; {0}[..., ::-1]; tw.reverse({0}, [0]); tw.roll({0}, 1, 0)
    tw.reshape(tw.reshape({0}, [-1]), {shape0}); tw.stack(tw.unstack({0}))
    tw.concat([{0}[1:], {0}[:1]], 0); tw.gather({0}, tw.range({n0})[::-1])
Aab -> A(a-1)b 1
    {0}[1:]; {0}[:-1]
Aab Aab -> A(a+a)b 1
    tw.concat([{0}, {1}], 0)
Aab -> A(a+a)b 1
    tw.repeat({0}, 2, 0); tw.concat([{0}[::2], {0}[::-1], {0}[1::2]], 0)
Nab -> N(a+2)b 1.5
    tw.pad({0}, [[1, 1], [0, 0]]); tw.pad({0}, [[2, 0], [0, 0]], constant_values=3)
Fab -> Fab 1.5
    tw.nn.max_pool1d({0}[None], 3, 1, "SAME")[0]; tw.pad({0}[1:], [[0, 1], [0, 0]])
    tw.nn.avg_pool1d({0}[..., None], 2, 1, "SAME")[..., 0]
    tw.pad(tw.nn.relu({0})[:, 1:], [[0, 0], [1, 0]])
A(R+R)b -> ARb 2
    {0}[:R]; {0}[R:]; {0}[::2]; tw.split({0}, 2)[1]
Aab i -> Ab 1
    {0}[{1} % {n0}]; tw.gather({0}, {1} % {n0})
Aab Ab -> Aab 1
    tw.tensor_scatter_nd_update({0}, [[0]], [{1}])
Nab Nb -> Nab 1
    tw.tensor_scatter_nd_add({0}, [[0], [{n0} - 1], [0]], [{1}] * 3)
Ab -> ARb 1
    tw.stack([{0}] * R); tw.broadcast_to({0}, [R, {n0}]); tw.tile({0}[None], [R, 1])
A -> ARC 1
    tw.fill([R, C], {0}); tw.broadcast_to({0}, [R, C])
Aab -> i 0.5
    tw.shape({0})[0] * tw.shape({0})[1]; tw.size({0})
Nab -> N(1)b 1
    tw.reduce_sum({0}, 0, keepdims=True); {0}[:1]
Fab -> Fa(1) 1
    tw.reduce_mean({0}, 1, keepdims=True); tw.reduce_max({0}, 1, keepdims=True)
Fa(1) F(1)b -> Fab 3
    {0} * {1}; {0} - {1}
Fab F(1)b -> Fab 1
    {0} * {1}; {1} - {0}
Aab -> A(1)ab 0.5
    tw.expand_dims({0}, 0); {0}[None]
Aab Aab -> A(2)ab 1
    tw.stack([{0}, {1}])
A(2)ab -> Aab 2
    {0}[1]; tw.unstack({0})[0]; tw.gather({0}, 1)
Aabc -> Abca 1
    tw.transpose({0}, [1, 2, 0])
Nabc -> Nab 1.5
    tw.reduce_sum({0}, 2); tw.reduce_max({0}, -1)
Nabc -> Nbc 1.5
    tw.reduce_sum({0}, 0); tw.reduce_min({0}, 0); {0}[0]
Fabc Fcd -> Fabd 1
    {0} @ {1}; tw.einsum("abc,cd->abd", {0}, {1})
Fabc Fc -> Fabc 1
    {0} + {1}; {0} * {1}

Fab Fbc -> Fac 2
    {0} @ {1}; {0} @ {1} * {c}
Fab Fbc Fac -> Fac 2
    {0} @ {1} + {2}; {2} - {0} @ {1}; {c} * {2} - {0} @ {1}
Fab Fcb -> Fac 1
    tw.matmul({0}, {1}, transpose_b=True)
Fba Fbc -> Fac 1
    tw.matmul({0}, {1}, transpose_a=True)
Fab Fb -> Fa 1
    tw.linalg.matvec({0}, {1}); tw.einsum("ab,b->a", {0}, {1})

-> fRC 0.6
    tw.random.normal([R, C]); tw.ones([R, C]); tw.random.uniform([R, C])
-> iR 0.3
    tw.range(R)
A* -> A* 0.4
    tw.zeros_like({0}); tw.ones_like({0})

@A* -> A* 2
    {0}.read(); tw.identity({0}); tw.convert_to_tensor({0})
@Aab -> Aba 0.5
    tw.transpose({0})
@A* A* -> 2
    {0}.assign({1})
@N* N* -> 3
    {0}.assign_add({1}); {0}.assign_sub({1})
@F* F* -> 1
    {0}.assign({0} * 0.5 + {1}); {0}.assign(tw.tanh({1}))
@Aab Ab -> 1
    {0}.assign(tw.tensor_scatter_nd_update({0}, [[0]], [{1}]))
@Fab Fb -> 0.5
    {0}.assign(tw.tensor_scatter_nd_add({0}, [[{n0} - 1], [0]], [{1}, {1}]))
A* -> 1.5
    show({0})
F* -> F* 0.5
    tw.numpy_function(lambda a: np.tanh(a) - a, [{0}], {spec0})

-> i 0.3
    tw.cast(next(numbers), "int32")

-> i 0.2
    7 // trap; tw.gather(tw.range(3), (trap - 1) * 5)
F -> F 0.2
    {0} * tw.linalg.cholesky(tw.cast([[trap]], {0}.dtype))[0, 0]
-> 0.1
    tw.debugging.assert_positive(trap)
"""


@dataclasses.dataclass
class Kind:
    """``text``: a template of an expression, or what writes the lines of a structure.

    ``make``: what makes a structure up. ``pure``: of its operands, and nothing else.
    """

    name: str
    text: object
    takes: list
    gives: str
    weight: float
    make: object = None
    pure: bool = True


def parsed(table):
    """The kinds of a table."""
    for head, lines in re.findall(r"^(\S.*)\n((?:    .*\n)+)", table, re.M):
        signature, weight = head.rsplit(" ", 1)
        takes, gives = signature.split("->")
        texts = [text.strip() for text in re.split(r"[;\n]", lines) if text.strip()]
        for text in texts:
            pure = bool(gives.strip()) and not re.search(
                "random|dropout|trap|numpy|next", text
            )
            share = float(weight) / len(texts)
            name = f"{signature} {text}"
            yield Kind(name, text, takes.split(), gives.strip(), share, pure=pure)


KINDS = {kind.name: kind for kind in parsed(TABLE)}
