"""The version of Keras whose names, configs and files those of `keras` are."""

__all__ = ["VERSION", "version"]

VERSION = "3.15.1"


def version() -> str:
    """Return the version of Keras whose names and files these are; also ``__version__``.

    Example:
        >>> keras.version()
        '3.15.1'
    """
    return VERSION
