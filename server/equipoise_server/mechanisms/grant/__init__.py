"""`grant`: one analyst asks what it likes, and pays for each statement out of a part of the data's budget."""
