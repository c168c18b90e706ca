"""Matrix products on a GPU: calls of cuBLASLt, and their epilogues."""
