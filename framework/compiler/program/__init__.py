"""Programs: array instructions over buffers, lowered from graphs; passes; a verifier."""
