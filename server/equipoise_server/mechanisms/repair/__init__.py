"""Repair: finds whom a synopsis serves badly, and answers them with fresh noise, for both units of protection."""
