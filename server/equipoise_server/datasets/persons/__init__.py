"""Tables whose persons have several rows: every person gets equally many records, made of its own rows alone."""
