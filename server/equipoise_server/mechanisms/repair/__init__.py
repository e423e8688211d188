"""Repair: who is served badly by a synopsis, found and answered afresh, for both units of protection."""
