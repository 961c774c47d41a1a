"""Heuristic search in which the language model learns: engine, models, sandbox, reports, command line."""
