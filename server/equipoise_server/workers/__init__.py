"""Worker processes and the pipes to them. The package `computation` has what the workers compute."""
