"""`laplace` and `gaussian`: independent noise on every count that is asked for."""
