"""The log: what was recorded at each step, its tree, its signed checkpoints, and the keys that sign them."""
