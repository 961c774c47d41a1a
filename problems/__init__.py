"""Heuristic-design problems: what a candidate must return, how it is checked and scored."""
