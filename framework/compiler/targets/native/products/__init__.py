"""Matrix products and contractions in machine code."""
