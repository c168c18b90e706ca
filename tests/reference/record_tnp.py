"""Write tnp.json: dtypes and values of TensorFlow's ``tf.experimental.numpy``.

    python tests/reference/record_tnp.py

It was written with TensorFlow 2.21 and NumPy 2.4. A dtype that is an error before
``experimental_enable_numpy_behavior``, as for many integers, is the one after it.
"""

import json
import os
from pathlib import Path

import numpy as np

WRITTEN = Path(__file__).with_name("tnp.json")
# Letters of dtypes of tensors, and arguments of Python and NumPy.
TENSORS = {
    "?": "bool", "B": "uint8", "b": "int8", "i": "int32", "l": "int64",
    "e": "float16", "f": "float32", "d": "float64", "F": "complex64",
}  # fmt: skip
OTHERS = {"1": 2, ".": 2.0, "j": 2j, "[": [1.0, 2.0, 1.0], "a": np.float32([1, 2, 1])}
UNARY = """
    abs absolute angle arccos arccosh arcsin arcsinh arctan arctanh around array asarray
    atleast_1d average bitwise_not cbrt ceil conj conjugate copy cos cosh count_nonzero
    cumprod cumsum deg2rad exp exp2 expm1 fabs fix floor imag iscomplex isfinite isinf isnan
    isneginf isposinf isreal log log10 log1p log2 logical_not negative positive rad2deg real
    reciprocal round sign signbit sin sinc sinh sqrt square tan tanh ravel amax amin max min
    sum prod mean var std ptp nansum nanprod nanmean all any argmax argmin argsort sort
    zeros_like ones_like empty_like diag diagflat diff vander
""".split()
BINARY = """
    add subtract multiply divide true_divide floor_divide mod remainder power float_power
    maximum minimum arctan2 hypot heaviside logaddexp logaddexp2 nextafter gcd lcm bitwise_and
    bitwise_or bitwise_xor equal not_equal greater greater_equal less less_equal logical_and
    logical_or logical_xor isclose allclose array_equal dot inner outer vdot matmul kron cross
    polyval append linspace logspace full_like result_type
""".split()
M = "[[1.5, -2.25, 0.5], [4.0, 0.25, -1.0]]"
W = "[[3, 0, 2], [1, 5, 4]]"
V = "[0.5, -0.25, 0.75]"
VALUES = f"""
    abs({M}) absolute(-2) add({M},{W}) all({W},1) allclose({V},{V}) amax({M},axis=0)
    amax({W},keepdims=True) amin({M},1) angle([1j,1-1j]) angle([1j,-2j],deg=True)
    any({W},axis=(0,1)) append([1,2],[[3.5]]) append({W},{W},axis=1) arange(5) arange(1,2,0.25)
    arange(3,0,-1) arange(2.5) arange(4,dtype='float32') arange(3,1) arccos({V})
    arccosh([1.5,2]) arcsin({V}) arcsinh({M}) arctan({M}) arctan2({M},{V}) arctanh({V})
    argmax({M}) argmax({W},axis=1) argmin({W}) argmin({M},0) argsort({M})
    argsort({W},axis=0,kind='stable') around({M}) around({M},1) array({W})
    array([1.5,2],dtype=int) array(3,ndmin=2) array_equal({W},{W}) array_equal({W},[1])
    asanyarray(2.5) asarray([True,2]) ascontiguousarray(1) atleast_1d(2) atleast_2d([1,2])
    atleast_3d([1,2]) atleast_3d({W}) atleast_1d(1,[2])[1] average({M}) average({M},axis=0)
    average({M},axis=1,weights={V}) average({W},weights={W},returned=True)[1]
    average({M},axis=0,returned=True)[1] bitwise_and(12,10) bitwise_not([3,-1])
    bitwise_or(12,[3,8]) bitwise_xor([12,5],10) bool_(1) broadcast_arrays([1,2],[[3],[4]])[1]
    broadcast_to({V},(2,3)) cbrt([8,-27.0]) ceil({M}) clip({M},-1,1.5) clip({W},None,3)
    clip({W},[1,2,3],None) compress([False,True],{W},axis=0) compress([True,False,True],{W})
    concatenate([{W},{M}]) concatenate([{W},{W}],axis=1) conj([1+2j]) conjugate([1-2j])
    copy({V}) cos({M}) cosh({M}) count_nonzero({W}) count_nonzero({W},axis=1)
    cross([1,2,3],[4,5.5,6]) cross([1,2],[3,4]) cross({M},{W},axis=1) cross([1,2,3],[4,5])
    cumprod({V}) cumprod({W},axis=1) cumsum({W}) cumsum({M},axis=-1)
    cumsum({W},dtype='float32') deg2rad(180) diag([1,2],k=1) diag({W},k=-1) diag({W},5)
    diag_indices(3)[1] diagflat({W},1) diagonal({W},offset=1) diagonal([{W},{W}],0,1,2)
    diagonal([{W},{M}]) diff({M}) diff({W},n=2) diff({W},axis=0) divide({W},2) divmod(7,-2)[1]
    divmod([7,-7],3)[0] dot({V},{V}) dot({M},{V}) dot(2,{V}) dot({M},[[1],[2],[3]])
    dsplit(array([{W}]),3)[1] dstack([{V},{V}]) einsum('ij,kj->ik',{M},{W})
    einsum('i,i->',{V},{V},optimize=True) empty((2,)) empty_like({W}) equal({W},{M}) exp({M})
    exp2({M}) expand_dims({V},1) expm1({V}) eye(3) eye(2,3,k=1,dtype=int) eye(3,2,k=-1)
    eye(2,k=5) fabs({M}) fix({M}) flatten({W}) flatten({W},'F') flip({W}) flip({W},1)
    fliplr({W}) flipud({W}) float_power({W},2) floor({M}) floor_divide({M},2)
    floor_divide([7,-7],2) full((2,2),3) full([2],[1.5,2]) full(3,1,'float32')
    full_like({W},2.5) gcd([12,-18],8) geomspace(1,8,4) geomspace(1.0,1000,3,endpoint=False)
    geomspace(-1,-100,3) greater({M},{W}) greater_equal({W},2) heaviside({M},0.5)
    heaviside([0,1],2) hsplit(array({W}),3)[2] hsplit(array({V}),[1])[1] hstack([{W},{M}])
    hstack([1,[2.5]]) hypot(3,[4.0,-5]) identity(2) imag([1+2j,3]) inner({M},{V}) inner({V},2)
    isclose({V},[0.5,-0.2500001,1]) iscomplex([1j,1])
    isclose([float('nan'),1],[float('nan'),2],equal_nan=True) iscomplexobj([1j])
    isfinite([1,inf]) isinf(array([1,inf])) isnan([1,float('nan')]) isneginf(array([-inf,inf]))
    isposinf(array([-inf,inf])) isreal([1j,1]) isrealobj({V}) isscalar(2) isscalar([2])
    ix_([0,1],[2,3,4])[0] ix_([True,False,True])[0] kron([1,2],{W}) kron({M},[[1],[2.0]])
    lcm([4,6],-6) less({M},0) less_equal({W},{M}) linspace(0,1,5)
    linspace(0,1,4,endpoint=False) linspace(1,2,3,retstep=True)[1]
    linspace(array({V}),1,3,axis=1) linspace(0,9,4,dtype=int) linspace(2,3,1) log({W}[1:])
    log10([1,1000.0]) log1p({V}) log2([8,2.0]) logaddexp(array({M}),array({W}))
    logaddexp2(array({M}),array({V})) logical_and({W},[1,0,1]) logical_not({W})
    logical_or({W},0) logical_xor({W},True) logspace(0,2,3)
    logspace(0,1,3,endpoint=False,base=2) matmul({M},[[1],[2],[3]]) matmul({M},{V})
    matmul({V},{V}) matmul([1,2],{W}) matmul([{M}],[[[1],[2],[3]]]) max({W},axis=1)
    maximum({M},0) maximum({W},1.5) mean({W}) mean({M},axis=1,keepdims=True)
    mean({W},dtype='float32') meshgrid([1,2],[3,4.5])[1]
    meshgrid([1,2],[3,4,5],indexing='ij')[0] min({M}) minimum({M},{W}) mod({M},2) mod([7,-7],3)
    moveaxis([{W}],0,-1) moveaxis([{W}],[0,1],[1,0]) multiply({M},{W})
    nanmean([1,float('nan'),3]) nanprod([2,float('nan'),3])
    nansum([[1,float('nan')],[2,3]],axis=0) ndim({W}) negative({M}) nextafter(1.0,[0.0,2])
    nonzero({W})[0] nonzero({W})[1] not_equal({W},[3,0,4]) ones((2,3)) ones(2,dtype=int)
    ones_like({M},dtype='int32') outer({V},[1,2]) pad({W},[[1,0],[0,2]],'constant')
    pad({M},[(0,1),(1,1)],'reflect') pad([1,2],[(2,1)],'symmetric')
    pad([1,2],[[1,1]],'constant',constant_values=9) polyval([1,-2,3],{V}) polyval([2],{V})
    polyval({V},2) positive({V}) power({M},2) power([2,3],[3,2]) power(2.0,{M}) prod({W})
    prod({M},axis=0) ptp({M},axis=1) ptp({W}) rad2deg(array({V})) ravel({W}) real([1+2j])
    reciprocal({M}) remainder({M},-2) repeat({V},2) repeat({W},2,axis=1) repeat([1,2],[0,3])
    reshape({W},(3,-1)) reshape({W},-1) reshape({W},[3,2],order='F') roll({W},1)
    roll({W},1,axis=1) rot90({W}) rot90({W},2) rot90({W},-1) round({M},1)
    select([[True,False,False],[True,True,False]],[{V},[1,2,3]],9) sign({M}) signbit({M})
    sin({M}) sinc({M}) sinh({M}) sort({M}) sort({W},axis=0) sort({W},axis=None)
    split([1,2,3,4],2)[1] split({W},[1,2],axis=1)[2] split([1,2,3],[2,5])[1] sqrt({W})
    square({M}) squeeze([[[1],[2]]]) squeeze([[[1],[2]]],axis=2) stack([{V},[1,2,3]])
    stack([{V},{V}],axis=1) stack({W}) stack(array({W}),axis=1) std({M})
    std({W},axis=1,keepdims=True) subtract({M},{W}) sum({M}) sum({W},axis=(0,1))
    sum({W},axis=1,keepdims=True,dtype=float) sum([[True,False],[False,False]],axis=1)
    swapaxes([{W}],0,2) take({W},[0,5,-1]) take({W},[1,3],axis=1,mode='wrap')
    take({M},1,axis=0) take_along_axis({W},[[1],[-1]],1) take_along_axis({W},[[1,0,0]],0)
    take_along_axis({M},[4,0],None) tan({V}) tanh({M}) tensordot({M},{W},[[0,1],[0,1]])
    tensordot({M},[[1],[2],[3]],1) tile({V},2) tile({W},(2,1,2)) trace([[1.5,2],[3,4]])
    trace({M},offset=1) trace([{M},{M}],axis1=1,axis2=2) transpose({W})
    transpose([{W}],(1,0,2)) tri(3) tri(2,3,k=-1,dtype=int) tril({W}) tril({W},-1) triu({M})
    triu({W},1) true_divide({W},[1,2,4]) vander([1,2,3]) vander({V},2)
    vander([1,2],4,increasing=True) var({M}) var({W},axis=1)
    var({M},axis=0,ddof=1,dtype='float64') var({M},dtype='float32') vdot({M},{W})
    vdot([1j],[2j]) vsplit(array({W}),2)[0] vstack([{V},[1,2,3]])
    where([True,False,True],{V},0) where({W})[1] zeros(3) zeros((2,1),dtype='complex64')
    zeros_like({W}) zeros_like(1.5) promote_types('int32','float32').name
    result_type(float,'int8').name e pi newaxis
"""  # fmt: skip


def letter(result):
    """The letter of the dtype of a result, "!" for none."""
    dtype = getattr(result, "dtype", None) or (
        result if hasattr(result, "as_numpy_dtype") else None
    )
    if dtype is None:
        return "!"
    dtype = getattr(dtype, "as_numpy_dtype", dtype)
    return np.dtype(dtype).char.replace("q", "l")


def dtypes(tf, tnp):
    """For each function of one or two arguments the letters of its dtypes."""
    values = {
        key: tf.cast(tf.constant([1, 2, 1]), name) for key, name in TENSORS.items()
    }
    values |= OTHERS

    def attempt(function, *arguments):
        try:
            return letter(function(*arguments))
        except Exception:
            return "!"

    found = {}
    for name in UNARY:
        function = getattr(tnp, name)
        found[name] = "".join(attempt(function, x) for x in values.values())
    for name in BINARY:
        function = getattr(tnp, name)
        pairs = [(x, y) for x in values.values() for y in values.values()]
        found[name] = "".join(attempt(function, *pair) for pair in pairs)
    return found


def expressions():
    """The calls whose values are recorded."""
    return [text for text in VALUES.replace(", ", ",").split() if text]


def value(expression, tnp):
    """``[letter of the dtype, shape, entries]`` of a call, or a plain value."""
    names = {name: getattr(tnp, name) for name in dir(tnp) if name[0] != "_"}
    result = eval(expression, {"float": float, "int": int, "True": True}, names)
    if not hasattr(result, "dtype"):
        return result
    array = np.asarray(result)
    flat = [complex(x) for x in array.ravel()]
    entries = [[x.real, x.imag] if x.imag else x.real for x in flat]
    return [letter(result), list(array.shape), entries]


def main():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

    import tensorflow as tf
    import tensorflow.experimental.numpy as tnp

    before = dtypes(tf, tnp)
    tnp.experimental_enable_numpy_behavior()
    after = dtypes(tf, tnp)
    letters = {}
    for name, old in before.items():
        new = after[name]
        both = "".join(b if a == "!" else a for a, b in zip(old, new))
        letters.setdefault(both, []).append(name)
    values = {text: value(text, tnp) for text in expressions()}
    lines = [f'"tensorflow": "{tf.__version__}"', '"dtypes": {']
    lines[-1] += ",\n".join(
        f"{json.dumps(' '.join(v))}: {json.dumps(k)}" for k, v in letters.items()
    )
    lines[-1] += "}"
    lines.append(
        '"values": {'
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in values.items())
        + "}"
    )
    WRITTEN.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
