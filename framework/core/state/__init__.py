"""Changes and readings of variables: atomic, deferred, substituted, cast."""
