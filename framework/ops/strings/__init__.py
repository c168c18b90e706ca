"""String ops: kernels over arrays of ``bytes``, on the CPU, without gradients."""
