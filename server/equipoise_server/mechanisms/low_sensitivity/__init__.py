"""low_sensitivity: answers statistics of bounded sensitivity one at a time."""
