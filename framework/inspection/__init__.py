"""The commands ``show`` and ``verify``: the contents of a file, and whether it is sound.

description    the content of a file of any format, as plain values
report         the description as text
verification   faults of a file, with every byte of it read
"""
