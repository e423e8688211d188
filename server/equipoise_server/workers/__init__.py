"""Worker processes and the pipes to them, and nothing else: what they compute is of `computation`."""
