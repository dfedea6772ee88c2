"""Recordings: what was flown, read from bags, logs, tables or memory."""
