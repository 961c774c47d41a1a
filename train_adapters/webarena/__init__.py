"""Web sites used by a browser agent."""
