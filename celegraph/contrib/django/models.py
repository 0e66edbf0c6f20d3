"""No models: the ledger is SQL.  The module has to be there for Django to send `post_migrate`."""
