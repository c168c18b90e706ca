"""`tw.function`: arguments told apart, traced, and called."""
