"""Python control flow in traced functions: `if`, `while` and `for` on tensors.

conversion          which functions are converted, and when
source              the syntax tree of a function
jumps               break, continue and return become flags
liveness            the variables that code assigns, and those still needed
transformer         control flow becomes calls of
operators           the functions that converted code calls:
conditions          and, or, not, conditional expressions, assert
branches            if
loops, traced_loop  while, for
iteration           what for goes over
builtin_functions   int, max, ... of tensors
state               variables as values
contents            lists, dicts and objects as values
"""
