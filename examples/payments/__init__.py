"""A payment agent, and a provider to try it against."""
