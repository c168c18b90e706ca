"""`tw.version`: the version of tapewright, as in ``tf.version``."""

__all__ = ["VERSION"]

VERSION = "0.2.0"
