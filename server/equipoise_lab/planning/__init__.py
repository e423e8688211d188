"""What every mechanism would do for a round of a given size, without any table: the command `plan`."""
