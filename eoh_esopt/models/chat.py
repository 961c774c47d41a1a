"""From a user turn to the text a chat model continues, and from its tokens back to a reply."""

from __future__ import annotations

import re
from typing import Any

from operators.errors import UserError

_TOP_LEVEL_LINE = re.compile(r"\n(?=[^\s])")
"""A prefilled reply begins inside a function: the first line that starts at column 0 ends it."""

TAIL_TOKENS = 4
"""How many of the last tokens show whether a line just began at column 0."""


def check_chat_template(tokenizer: Any, source: str) -> None:
    """Refuse tokenizers that do not know how a conversation looks.

    Raises:
        UserError: the tokenizer has no chat template.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise UserError(
            f"The tokenizer in {source} has no chat template: it belongs to a base model. "
            "Use the instruction-tuned variant, or put its chat_template.jinja into the folder."
        )


def render(tokenizer: Any, prompt: str, prefill: str) -> str:
    """The conversation up to where the model goes on. Thinking is switched off where the template knows it."""
    turns = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    return str(text) + prefill


def ends_function(tail: str) -> bool:
    """Whether the text's tail shows that a prefilled function has ended."""
    return _TOP_LEVEL_LINE.search(tail) is not None


def cut_after_function(completion: str) -> str:
    """A prefilled reply without what follows its function."""
    return _TOP_LEVEL_LINE.split(completion, maxsplit=1)[0]
