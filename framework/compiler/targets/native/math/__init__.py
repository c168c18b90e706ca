"""Branch-free scalar functions as arithmetic on `IRValue`s, one file per family."""
