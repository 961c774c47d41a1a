"""Experiments: what runs say when they are put side by side."""
