"""The zero-sum game as pure mathematics: the two players, the projection between them, and the loop."""
