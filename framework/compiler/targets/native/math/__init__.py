"""Branch-free scalar functions as arithmetic on `Value`s, one file per family."""
