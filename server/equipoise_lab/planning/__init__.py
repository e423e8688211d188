"""The command `plan`: compares the plans of all mechanisms for a round of a given size, without any table."""
