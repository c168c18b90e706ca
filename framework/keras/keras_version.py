"""The version of Keras whose names, configs and files `keras` is compatible with."""

VERSION = "3.15.1"


def version() -> str:
    """Return the version of Keras that `keras` is compatible with; also ``__version__``.

    Example:
        >>> keras.version()
        '3.15.1'
    """
    return VERSION
