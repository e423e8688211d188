"""What every call passes before it reaches a service."""
