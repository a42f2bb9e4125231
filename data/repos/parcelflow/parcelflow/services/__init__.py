"""Business logic."""
