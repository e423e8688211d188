"""The edge: protobuf in, protobuf out, no decisions."""
