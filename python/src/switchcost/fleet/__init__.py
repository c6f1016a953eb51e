"""Measure many hosts with an engine that exists, and find the odd one (docs/fleet.md)."""
