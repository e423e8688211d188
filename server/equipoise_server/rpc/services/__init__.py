"""One gRPC service for each role, and the streams they open."""
