"""Mathematical questions, answered with a shell in a sandbox: rows from files or drawn, and one scorer for all uses."""

from train_adapters.math_tasks.adapter import make_adapter

__all__ = ["make_adapter"]
