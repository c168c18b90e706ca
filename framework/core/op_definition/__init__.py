"""Parts of the definition of an op: traits, costs, generated code, the registry."""
