"""Training of agents by evolution strategies: one trainer for every environment, and adapters for some of them."""
