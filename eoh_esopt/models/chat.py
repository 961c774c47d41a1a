"""From a user turn to the text a chat model continues, and from its tokens back to a reply. For every backend.

Handled here once: templates without a system role, thinking on and off, beginnings of replies, a text's tokens without
a second beginning-of-text token, what ends a turn, stop strings, and the room that the context leaves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eoh_esopt.models.protocol import Prompt, Turn
from operators.errors import UserError

_TOP_LEVEL_LINE = re.compile(r"\n(?=[^\s])")
"""A prefilled reply begins inside a function: the first line that starts at column 0 ends it."""

_THOUGHT_BEGINS = re.compile(r"<(?:think|thinking|thought|reasoning)>\s*\Z")
_MARK = "b7f2c09e"
"""A word that no template has."""

TAIL_TOKENS = 4
"""How many of the last tokens show whether a line just began at column 0."""


@dataclass(frozen=True)
class ChatSettings:
    """How conversations are held.

    Attributes:
        system: text of the system turn; where it is empty, the template's own default stays.
        thinking: let models that can think do so before they answer.
        stop: texts that end a reply; it does not contain them.
    """

    system: str = ""
    thinking: bool = False
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(self.stop):
            raise UserError("A stop string is empty: it would end every reply before it begins. Leave it out.")

    def until(self, stop: tuple[str, ...]) -> ChatSettings:
        """The same settings with further stop strings."""
        return replace(self, stop=(*self.stop, *stop)) if stop else self


PLAIN = ChatSettings()


def check_chat_template(tokenizer: Any, source: str, settings: ChatSettings = PLAIN) -> None:
    """Refuse tokenizers that do not know how a conversation looks, or not one with these settings.

    Raises:
        UserError: there is no chat template, it cannot be rendered, or thinking cannot be switched as asked.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise UserError(
            f"The tokenizer in {source} has no chat template: it belongs to a base model. "
            "Use the instruction-tuned variant, or put its chat_template.jinja into the folder."
        )
    try:
        off, on = (_rendered(tokenizer, "Hi.", ChatSettings(settings.system, thinking)) for thinking in (False, True))
    except Exception as error:
        raise UserError(
            f"The chat template in {source} cannot be rendered: {error}. Use the model's own chat_template.jinja."
        ) from error
    if settings.thinking and on == off:
        raise UserError(f"The model in {source} has no thinking mode. Switch thinking off, or use a model that has.")
    if not settings.thinking and _THOUGHT_BEGINS.search(off):
        raise UserError(
            f"The model in {source} always thinks before it answers: its template has no switch. Use the variant that "
            "answers at once."
        )


def render(tokenizer: Any, prompt: Prompt, prefill: str, settings: ChatSettings = PLAIN) -> str:
    """The conversation up to where the model goes on.

    Raises:
        UserError: the reply is to be begun, but the model thinks first.
    """
    if prefill and settings.thinking:
        raise UserError("A reply cannot be begun for a model that thinks first. Use --prefill none, or no thinking.")
    return _rendered(tokenizer, prompt, settings) + prefill


def opening(text: str) -> str:
    """The tag with which a rendered conversation has begun the model's thought; empty where it has not."""
    begun = _THOUGHT_BEGINS.search(text)
    return begun[0] if begun else ""


def encode(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of rendered conversations. Templates write the beginning-of-text token, so none is added."""
    return [list(map(int, tokens)) for tokens in tokenizer(list(texts), add_special_tokens=False)["input_ids"]]


def room(prompt_tokens: int, context: int, limit: int) -> int:
    """How many new tokens a prompt may get; 0 where it fills the context: such a reply is empty and truncated."""
    return max(0, min(limit, context - prompt_tokens))


def end_tokens(tokenizer: Any, configured: int | Sequence[int] | None) -> list[int]:
    """What ends a reply: the model's and the tokenizer's end tokens, and the one that the template ends a turn with."""
    ends = [configured] if isinstance(configured, int) else list(configured or ())
    if not ends and tokenizer.eos_token_id is not None:
        ends.append(tokenizer.eos_token_id)
    turn_end = _turn_end(tokenizer)
    return ends if turn_end is None or turn_end in ends else [*ends, turn_end]


def ends_function(tail: str) -> bool:
    """Whether the text's tail shows that a prefilled function has ended."""
    return _TOP_LEVEL_LINE.search(tail) is not None


def cut_after_function(completion: str) -> str:
    """A prefilled reply without what follows its function."""
    return _TOP_LEVEL_LINE.split(completion, maxsplit=1)[0]


def tail_tokens(settings: ChatSettings) -> int:
    """How many of the last tokens show whether a reply just ended: a token holds at least one byte."""
    return max(TAIL_TOKENS, *(len(stop.encode()) + 1 for stop in settings.stop), 0)


def has_ended(tail: str, prefilled: bool, settings: ChatSettings = PLAIN) -> bool:
    """Whether the text's tail shows that a reply is over, by its function's end or a stop string."""
    return (prefilled and ends_function(tail)) or any(stop in tail for stop in settings.stop)


def finished(completion: str, prefilled: bool, settings: ChatSettings = PLAIN) -> str:
    """A reply without what follows its end."""
    if prefilled:
        completion = cut_after_function(completion)
    return completion[: min((completion.find(stop) for stop in settings.stop if stop in completion), default=None)]


def messages(prompt: Prompt, system: str = "") -> list[dict[str, str]]:
    """A prompt as chat messages, led by the text of a system turn if there is one: the prompt's own, or else `system`.

    Raises:
        UserError: the conversation is not one between a user, who begins and ends it, and the model.
    """
    turns = (Turn("user", prompt),) if isinstance(prompt, str) else prompt
    roles = [turn.role for turn in turns]
    talk = roles[roles[:1] == ["system"] :]
    if not talk or {talk[0], talk[-1]} != {"user"} or not set(talk) <= {"user", "assistant"}:
        raise UserError(
            f"A conversation has turns of user and assistant, of which the first and the last are the user's, after a "
            f"system turn if need be, not {', '.join(roles) or 'nothing'}. Mend the adapter's prompt."
        )
    if system and roles[0] != "system":
        turns = (Turn("system", system), *turns)
    return [{"role": turn.role, "content": turn.text} for turn in turns]


def as_json(prompt: Prompt) -> str | list[dict[str, str]]:
    """A prompt as JSON holds it: a text, or messages."""
    return prompt if isinstance(prompt, str) else messages(prompt)


def from_json(value: Any) -> Prompt:
    """The prompt that `as_json` has written.

    Raises:
        KeyError, TypeError: it has not written this.
    """
    if isinstance(value, str):
        return value
    turns = tuple(Turn(one["role"], one["content"]) for one in value)
    if not all(isinstance(text, str) for turn in turns for text in (turn.role, turn.text)):
        raise TypeError("a turn's role and content have to be texts")
    return turns


def words(prompt: Prompt) -> str:
    """All that a prompt says, for people and for programs that look for something in it."""
    return prompt if isinstance(prompt, str) else "\n".join(turn.text for turn in prompt)


def _rendered(tokenizer: Any, prompt: Prompt, settings: ChatSettings) -> str:
    turns = messages(prompt, settings.system)
    if turns[0]["role"] == "system" and not _takes_system(tokenizer):
        system, first, *others = turns
        turns = [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *others]
    text = tokenizer.apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True, enable_thinking=settings.thinking
    )
    return str(text)


def _takes_system(tokenizer: Any) -> bool:
    """Whether a system turn shows in what the template writes; some templates refuse it, some drop it."""
    turns = [{"role": "system", "content": _MARK}, {"role": "user", "content": "Hi."}]
    try:
        return _MARK in str(tokenizer.apply_chat_template(turns, tokenize=False))
    except Exception:  # noqa: BLE001 - templates are programs, and raise what they like
        return False


def _turn_end(tokenizer: Any) -> int | None:
    """The special token that follows an assistant's words; None where the template has none."""
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": _MARK}]
    try:
        after = str(tokenizer.apply_chat_template(turns, tokenize=False)).partition(_MARK)[2].lstrip()
    except Exception:  # noqa: BLE001 - templates are programs
        return None
    first = encode(tokenizer, [after])[0][:1]
    special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    return first[0] if first and first[0] in special else None
