"""What a run says, on its way from the worker to whoever listens.

Events come from PostgreSQL and are certain; chunks go through Redis and are best effort.
"""
