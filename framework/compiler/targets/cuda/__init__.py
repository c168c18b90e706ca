"""The target cuda: programs as CUDA C and calls of cublasLt, captured in CUDA graphs."""
