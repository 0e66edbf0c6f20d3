"""Real servers for a laptop: found, started with passwords, and ended with their parent."""
