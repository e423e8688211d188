"""The gRPC interface: converts messages, guards calls, and decides nothing about rounds or budgets."""
