"""Tables in databases, counted where they lie."""
