"""Keras 2: functions, configs and preprocessing of its time, imported at first use.

Modules::

    backend         `keras.backend`: functions of ``tf.keras.backend``
    preprocessing   `keras.preprocessing`: images, sequences and texts
    configs         conversion between configs of Keras 2 and Keras 3
    functions       functions of Keras 2 between layers, as in Keras 3
    serialization   `keras.utils.legacy`: configs of Keras 2 for libraries
"""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily

if TYPE_CHECKING:
    from . import configs as configs
    from . import functions as functions

import_lazily(
    sys.modules[__name__],
    configs=f"{__name__}.configs",
    functions=f"{__name__}.functions",
)
