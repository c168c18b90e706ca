"""Record Python calls as a `Graph` of op nodes."""
