"""CPU, GPUs, threads, and the array modules and BLAS libraries that use them."""
