"""What the two example shops share: the agent, the pages' templates, and the servers they run on."""
