"""Settings of the process: threads, targets, dtypes, determinism."""
