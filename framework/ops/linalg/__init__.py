"""Matrix products, linear systems and decompositions."""
