"""Python calls become a Graph of op nodes."""
