"""`keras.datasets`: the modules of `tapewright.datasets`."""

from tapewright import datasets as _datasets
from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports
from tapewright.core.settings.floatx import image_data_format
from tapewright.datasets import cifar as _cifar

with _lazy_imports(globals()):
    from tapewright.datasets import (
        boston_housing as boston_housing,
    )
    from tapewright.datasets import (
        california_housing as california_housing,
    )
    from tapewright.datasets import (
        cifar10 as cifar10,
    )
    from tapewright.datasets import (
        cifar100 as cifar100,
    )
    from tapewright.datasets import (
        digits as digits,
    )
    from tapewright.datasets import (
        fashion_mnist as fashion_mnist,
    )
    from tapewright.datasets import (
        imdb as imdb,
    )
    from tapewright.datasets import (
        mnist as mnist,
    )
    from tapewright.datasets import (
        reuters as reuters,
    )

__all__ = _datasets.__all__
_cifar.image_data_format = image_data_format
