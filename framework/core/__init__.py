"""Values and ops: what everything else is made of."""
