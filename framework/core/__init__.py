"""What a value is, and what an op is."""
