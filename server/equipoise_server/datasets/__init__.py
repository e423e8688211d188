"""Private tables: read by the engines that hold them, kept only as integer counts."""
