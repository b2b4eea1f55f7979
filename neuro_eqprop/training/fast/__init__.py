"""Compiled and fused settling for chains of layers."""
