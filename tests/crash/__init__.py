"""Real processes that die, and what must be true afterwards."""
