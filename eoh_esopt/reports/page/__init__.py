"""The report on runs: one page that holds all it needs, its tables and its figures."""
