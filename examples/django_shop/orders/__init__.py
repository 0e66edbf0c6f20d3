"""Orders and the claims about them."""
