"""The commands ``show`` and ``verify``: print the contents of a file, and check it.

description    the content of a file of any format, as plain values
report         the description as text
verification   faults of a file, with every byte of it read
"""
