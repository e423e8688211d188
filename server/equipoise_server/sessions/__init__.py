"""Online sessions while they are open: who is attached, the worker that answers, and what was answered."""
