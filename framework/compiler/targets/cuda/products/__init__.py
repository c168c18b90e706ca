"""Products of matrices on a GPU: calls of cuBLASLt, and epilogues in them."""
