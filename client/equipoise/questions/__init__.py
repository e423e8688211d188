"""Questions as people ask them, in SQL: the statements that they come to, and the tables that answer them."""
