"""Saving: what is written to files, and read back.

In the folders, each of which builds on those before it:

    storage       files that are whole or not at all, and read with care
    checkpoints   the values of objects that are made by code, by their places
    graphs        traced functions, with gradients of the user's own
    keras_files   Keras' files, both ways: weights and whole models
    inspection    what is inside a file, and whether it is sound

Here: `saved_model`, a `Module` with its functions in a file.
"""
