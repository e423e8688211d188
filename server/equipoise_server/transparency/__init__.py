"""The transparency log: the record of each step, the Merkle tree, its signed checkpoints, and the signing keys."""
