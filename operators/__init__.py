"""The core: search operators in ask/tell form and evolution strategies. No torch, no input or output."""
