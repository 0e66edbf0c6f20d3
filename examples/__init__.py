"""Agents to read, run and copy from."""
