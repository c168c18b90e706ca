"""Names of other libraries: missing ones, and imports that lead here."""
