"""From a graph of ops to a program: rules, and traces of kernels."""
