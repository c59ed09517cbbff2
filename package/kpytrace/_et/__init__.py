"""Execution traces as files: read, checked, linked with a profile, compared, converted."""
