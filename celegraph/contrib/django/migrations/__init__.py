"""One for each of the ledger's own migrations; each calls all of them."""
