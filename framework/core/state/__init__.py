"""Variables in a context: atomic changes, substitutes, casts, replicas, own files."""
