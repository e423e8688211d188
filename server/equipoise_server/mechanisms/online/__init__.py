"""Session mechanisms: statements are answered one at a time, in the order in which they are asked."""
