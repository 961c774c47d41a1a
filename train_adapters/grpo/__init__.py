"""Group relative policy optimisation as a baseline: the same episodes, another way to learn from them."""
