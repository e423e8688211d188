"""The life of a round: states, terms, submissions, the worker that computes it, and its release."""
