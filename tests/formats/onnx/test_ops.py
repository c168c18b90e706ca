"""Every op of the op table: in onnxruntime as in eager mode, or refused by name."""

import functools

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import SavingError

from ...op_table import op_table
from .runtime import assert_close, load, run

# Ops that ONNX lacks: complex numbers and spectra, strings, random numbers, special
# functions, decompositions, sets, and adjoints of ops on windows.
REFUSED = """
    add_neighbours add_to_maxima all_reduce_extreme all_reduce_sum angle
    banded_triangular_solve bessel_i bessel_i0e bessel_i1e bessel_j bessel_k
    bessel_slope bessel_y beta_density betainc betainc_by_x betainc_slope bitcast
    boolean_mask checked_rowids checked_splits cholesky clear_diag clear_row
    clear_rows cofactor cofactor_slope complex convolution_filter_gradient
    counting_derivatives dawsn dct diag digamma dropout_mask dynamic_partition
    edit_distance eig eig_restored eigh eigh_restored eigh_tridiagonal eights
    eigvalsh erfcinv erfinv expint expm flatnonzero fold fresnel_cos fresnel_sin
    fresnel_slope gamma_density gram_factor gru_jvp gru_steps gru_vjp igamma
    igamma_slope igammac in_top_k increasing inv is_last lbeta lgamma logdet
    lstm_jvp lstm_steps lstm_vjp lstsq lu lu_inverse lu_solved matrix_rank max_rows
    mfccs_from_log_mel_spectrograms min_rows ndtri nextafter non_max_suppression
    nonzero of_rank_one over_gaps over_gaps_turned pick_at_maxima pinv polygamma
    polygamma_of_order qr qr_projectors random_binomial random_categorical
    random_gamma random_gamma_grad random_integers random_normal random_permutation
    random_poisson random_seeds random_standard_gamma random_uniform resample_back
    restored rfft rfft2d rfft3d segment_max segment_mean segment_min segment_prod
    segment_sum set_apart set_diag set_operation set_size simple_rnn_jvp
    simple_rnn_steps simple_rnn_vjp sinc singular_values slogdet slope_by_x solve
    spence spence_slope spread_means spread_to_maxima sqrtm stable_order
    stft suppress_boxes suppress_overlaps svd svd_restored
    tensor_diag tensor_scatter_nd_max tensor_scatter_nd_min triangular_solve
    tridiagonal_solve unique unknown_order unless_turned zeta
""".split()
PARTS = {  # of ops that are translated
    "cast(to complex)",
    "<lambda>(max_pool_with_argmax)",
    "<lambda>(rfftnd (2, 1) None)",
    "<lambda>(rfftnd (0,) (3,))",
    "diag_part(3x4;k=(-1, 1))",
    "diag_part(3x3;k=(-1, 1),align=LEFT_RIGHT)",
    "diag_part(2x3;k=(0, 2),padding_value=7.0)",
    "norm(2x3;ord=2,axis=(0, 1))",
    "norm(2x3;ord=nuc,axis=(0, 1))",
    "norm(2x3x2;ord=2,axis=[-1, 0],keepdims=False)",
    "norm(2x3x2;ord=2,axis=[-1, 0],keepdims=True)",
    "norm(2x3x2;ord=nuc,axis=[-1, 0],keepdims=False)",
    "norm(2x3x2;ord=nuc,axis=[-1, 0],keepdims=True)",
}
# Cases that onnxruntime computes otherwise, or not at all.
DIFFERENT = {
    "rest_of_sigmoid(2x3,2x3)",  # its first input must be the sigmoid of the second
    "reduce_mean(0x3;axis=0)",  # a mean of nothing
    "tile(2;multiples=(0,))",
    "shift(0;axis=0,by=1)",
    "segment_rows(0x2,2)",
    "unsorted_segment_sum(2x0,2;num_segments=3)",
    "saturate_cast(large)",  # of float64, which become float32 here
}


@functools.cache
def cases_by_op():
    found = {}
    for case in op_table():
        name = getattr(case.primitive, "name", None) or str(case).partition("(")[0]
        found.setdefault(name, []).append(case)
    return found


def single(x):
    """An input as a tensor: runtimes have few kernels for float64."""
    x = np.asarray(x)
    return tw.constant(x.astype("f4") if x.dtype == np.float64 else x)


def outcome(case, path):
    """None where all outputs agree; "refused"; or "other" for a case without a graph."""
    inputs = [single(x) for x in case.inputs]
    try:
        eager = [np.asarray(x) for x in tw.nest.flatten(case(*inputs))]
    except (tw.errors.InvalidArgumentError, TypeError, ValueError):
        return "other"  # it needs float64
    specs = [tw.TensorSpec(x.shape, x.dtype) for x in inputs]
    try:
        tw.onnx.save(lambda *args: case(*args), specs, path)
    except SavingError:
        return "refused"
    load(path)
    for got, wanted in zip(run(path, *inputs), eager, strict=True):
        assert_close(got, wanted, 2e-5)
    return None


@pytest.mark.parametrize("name", sorted(cases_by_op()))
def test_it_computes_the_same_or_is_refused(name, tmp_path):
    cases = [c for c in cases_by_op()[name] if str(c) not in DIFFERENT]
    kinds = {str(c): {np.asarray(x).dtype.kind for x in c.inputs} for c in cases}
    found = {str(case): outcome(case, tmp_path / "op.onnx") for case in cases}
    refused = {case for case, how in found.items() if how == "refused"}
    numbers_only = {case for case in found if "c" not in kinds[case]}
    if name in REFUSED:
        assert {*found.values()} <= {"refused", "other"}
    else:
        assert refused & numbers_only == PARTS & found.keys()
    assert refused >= found.keys() - numbers_only - {
        c for c, h in found.items() if h == "other"
    }
