"""Counter-based random numbers and their distributions."""
