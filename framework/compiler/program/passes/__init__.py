"""Passes over programs, and the driver that runs and verifies them."""
