"""Values and ops: the foundation of all other folders."""
