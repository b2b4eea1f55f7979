"""Comparison of traces, agreement metrics, and virtual weight updates."""
