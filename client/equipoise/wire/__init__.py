"""Protobuf messages to values and back: the only place that knows equipoise.v1, with the clients."""
