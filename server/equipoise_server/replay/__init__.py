"""Replay: a released round computed again from its data and its seed, and compared with what was released."""
