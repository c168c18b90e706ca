"""The files of `keras.preprocessing`: images, sequences and texts."""
