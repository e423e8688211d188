"""What the tests share: stores, servers, misbehaving clients, small examples. Nothing else of tests is imported."""
