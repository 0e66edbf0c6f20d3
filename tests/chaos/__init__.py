"""Everything at once: real servers and workers under seeded faults, and an oracle beside them."""
