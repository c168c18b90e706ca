"""Functions of numbers as arithmetic on `Value`s, without branches, a file per family."""
