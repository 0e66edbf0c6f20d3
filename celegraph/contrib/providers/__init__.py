"""Helpers for effects at common providers: `http` (Idempotency-Key, with httpx) and `smtp`."""
