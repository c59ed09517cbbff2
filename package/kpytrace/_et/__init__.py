"""Files of execution traces: reads, checks, compares and converts them, and links them with a profile."""
