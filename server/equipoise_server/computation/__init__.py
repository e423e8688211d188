"""A round is a pure function of its job and its table; workers and replay both use it, and it opens no store."""
