"""Questions about document pages that the model sees only through the text recognition it runs in its sandbox."""

from train_adapters.docvqa.adapter import make_adapter

__all__ = ["make_adapter"]
