"""The same shop in Flask, with SQLAlchemy."""
