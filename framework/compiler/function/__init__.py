"""`tw.function`: arguments are classified, traced, and called."""
