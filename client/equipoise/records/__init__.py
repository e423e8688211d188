"""The verifiable formats: bytes that are hashed or signed, and read strictly."""
