"""Commands of the holder of the state directory, which run without the server."""
