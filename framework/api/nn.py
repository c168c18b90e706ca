"""`tw.nn`: activations, convolutions, normalizations and losses as ops, as ``tf.nn``."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports
from tapewright.ops.array.approx_top_k import *
from tapewright.ops.array.gather import embedding_lookup as embedding_lookup
from tapewright.ops.array.shape import (
    depth_to_space as depth_to_space,
    space_to_depth as space_to_depth,
)
from tapewright.ops.array.space_to_batch import space_to_batch as space_to_batch
from tapewright.ops.array.sorting import in_top_k as in_top_k, top_k as top_k
from tapewright.ops.collective import (
    compute_average_loss as compute_average_loss,
    scale_regularization_loss as scale_regularization_loss,
)
from tapewright.ops.convolution.conv import *
from tapewright.ops.convolution.pooling import *
from tapewright.ops.linalg.matmul import affine as affine
from tapewright.ops.nn.activation import *
from tapewright.ops.nn.attention import *
from tapewright.ops.nn.bias import *
from tapewright.ops.nn.cross_entropy import *
from tapewright.ops.nn.dropout import *
from tapewright.ops.nn.dropout import stateless_dropout as stateless_dropout
from tapewright.ops.nn.moments import *
from tapewright.ops.nn.morphology import *
from tapewright.ops.nn.normalization import *
from tapewright.ops.nn.sampled_loss import *
from tapewright.ops.random.candidate_sampling import (
    all_candidate_sampler as all_candidate_sampler,
    compute_accidental_hits as compute_accidental_hits,
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from tapewright.ops.sparse.products import (
    embedding_lookup_sparse as embedding_lookup_sparse,
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)

with _lazy_imports(globals()):  # CTC is a loss of Keras
    from .ctc import (
        collapse_repeated as collapse_repeated,
        ctc_beam_search_decoder as ctc_beam_search_decoder,
        ctc_greedy_decoder as ctc_greedy_decoder,
        ctc_loss as ctc_loss,
        ctc_unique_labels as ctc_unique_labels,
    )


class experimental:
    """Names of ``tf.nn.experimental``."""

    stateless_dropout = staticmethod(stateless_dropout)
