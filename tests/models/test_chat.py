"""Between conversations and tokens: what the model sees first, and where a prefilled reply ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from eoh_esopt.models import chat
from operators.errors import UserError


class FakeTokenizer:
    """A chat template that writes its settings down."""

    chat_template = "template"

    def apply_chat_template(self, turns: list[dict[str, str]], **settings: Any) -> str:
        return f"{turns} {sorted(settings.items())}\n"


def test_tokenizers_without_a_chat_template_are_refused() -> None:
    """A base model would continue the prompt instead of answering it, in every reply of the run."""
    tokenizer = FakeTokenizer()
    chat.check_chat_template(tokenizer, "folder")
    tokenizer.chat_template = ""
    with pytest.raises(UserError, match=r"folder has no chat template.*instruction-tuned"):
        chat.check_chat_template(tokenizer, "folder")


def test_thinking_is_switched_off() -> None:
    """A model that thinks first would fill the reply limit before any code."""
    text = chat.render(FakeTokenizer(), "task", "def f():")
    assert "('enable_thinking', False)" in text
    assert "('add_generation_prompt', True)" in text
    assert "{'role': 'user', 'content': 'task'}" in text


@pytest.mark.model
@pytest.mark.parametrize("prefill", ["", '```python\nimport numpy as np\n\ndef f(x):\n    """'])
def test_the_reply_begins_where_the_conversation_ends(small_model: Path, prefill: str) -> None:
    """A template that closes the turn after the prefill would make the model answer someone else."""
    text = chat.render(AutoTokenizer.from_pretrained(small_model), "Write f.", prefill)
    assert text.endswith(f"<|im_start|>assistant\n{prefill}")
    assert text.count("Write f.") == 1


ENDED = [
    (" a + b\n```\nIt adds.", " a + b"),
    (" a + b\n\nprint(add(1, 2))", " a + b\n"),
    (" a\n    # done\n\n\n\n\n\ndef other():\n    pass", " a\n    # done\n\n\n\n\n"),
    ("x\n\n    return x\n# end", "x\n\n    return x"),
    ("x\n```", "x"),
    ("x\n😀", "x"),
]
OPEN = [" a + b", " a + b\n", "a\n    return a\n\n\n", "a\n\treturn a\n  \n", ""]


@pytest.mark.parametrize(("completion", "function"), ENDED)
def test_the_first_line_at_column_0_ends_the_function(completion: str, function: str) -> None:
    """Talk or a second function after the code would be run with it, or cost tokens for nothing."""
    assert chat.ends_function(completion)
    assert chat.cut_after_function(completion) == function


@pytest.mark.parametrize("completion", OPEN)
def test_a_function_in_progress_goes_on(completion: str) -> None:
    """A blank line inside a function is no end: stopping there would cut programs in half."""
    assert not chat.ends_function(completion)
    assert chat.cut_after_function(completion) == completion


@pytest.mark.model
def test_the_tail_shows_an_end_as_soon_as_the_whole_text_does(small_model: Path) -> None:
    """An end that the last tokens do not show would be missed, and the reply run on to its limit."""
    tokenizer: Any = AutoTokenizer.from_pretrained(small_model)
    for completion in [text for text, _ in ENDED] + OPEN:
        tokens = tokenizer(completion, add_special_tokens=False)["input_ids"]
        whole = [chat.ends_function(tokenizer.decode(tokens[: end + 1])) for end in range(len(tokens))]
        tails = [
            chat.ends_function(tokenizer.decode(tokens[max(0, end + 1 - chat.TAIL_TOKENS) : end + 1]))
            for end in range(len(tokens))
        ]
        assert (whole.index(True) if True in whole else None) == (tails.index(True) if True in tails else None)
