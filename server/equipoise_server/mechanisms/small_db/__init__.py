"""`small_db`: each analyst's answers are those of one small database, drawn by the exponential mechanism."""
