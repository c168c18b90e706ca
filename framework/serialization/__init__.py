"""Objects as plain JSON: registry of names, configs of constructors, plain values."""
