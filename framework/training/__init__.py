"""Training: losses, models and what feeds them."""
