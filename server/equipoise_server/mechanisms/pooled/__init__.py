"""`pooled`: measure once what many ask for, and share the synopsis."""
