"""`keras.metrics`: metrics with Keras' names, defaults and arithmetic.

`metric` and `reduction` contain the base classes; `accuracy`, `probabilistic`,
`regression` and `correlation` are means of functions; `confusion`, `threshold_metrics`
and `auc` are computed from the counts of `confusion_metric`, `f_score` and `iou` from
counts per class; `serialization` resolves names of metrics.
"""

from ..losses import (
    KLD,
    MAE,
    MAPE,
    MSE,
    MSLE,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    kld,
    kullback_leibler_divergence,
    log_cosh,
    logcosh,
    mae,
    mape,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    mse,
    msle,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from . import (
    accuracy,
    auc,
    confusion,
    correlation,
    f_score,
    iou,
    metric,
    probabilistic,
    reduction,
    regression,
    threshold_metrics,
)
from .accuracy import *
from .auc import *
from .confusion import *
from .correlation import *
from .f_score import *
from .iou import *
from .metric import *
from .probabilistic import *
from .reduction import *
from .regression import *
from .serialization import deserialize, get, serialize
from .threshold_metrics import *

__all__ = [
    "KLD",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "deserialize",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "kld",
    "kullback_leibler_divergence",
    "log_cosh",
    "logcosh",
    "mae",
    "mape",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "mse",
    "msle",
    "poisson",
    "serialize",
    "sparse_categorical_crossentropy",
    "squared_hinge",
]
__all__ += accuracy.__all__
__all__ += auc.__all__
__all__ += confusion.__all__
__all__ += correlation.__all__
__all__ += f_score.__all__
__all__ += iou.__all__
__all__ += metric.__all__
__all__ += probabilistic.__all__
__all__ += reduction.__all__
__all__ += regression.__all__
__all__ += threshold_metrics.__all__
__all__.sort()
