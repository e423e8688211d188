"""The public facts that client and server share; no protobuf, no SQL."""
