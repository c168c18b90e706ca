"""Names: of modules, of objects, and those that are reserved."""
