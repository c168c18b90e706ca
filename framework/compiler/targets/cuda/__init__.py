"""The target `cuda`: programs as CUDA C and calls of cuBLASLt, captured in CUDA graphs."""
