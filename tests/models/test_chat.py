"""Between conversations and tokens: what the model sees first, and where a prefilled reply ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES, QWEN_25, QWEN_35, tiny_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from eoh_esopt.models import cache, chat
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.protocol import Turn
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
    system = chat.render(AutoTokenizer.from_pretrained(small_model), "Write f.", prefill, ChatSettings("Be short."))
    assert system == f"<|im_start|>system\nBe short.<|im_end|>\n{CHATML}{prefill}"


CHATML = "<|im_start|>user\nWrite f.<|im_end|>\n<|im_start|>assistant\n"
NO_THOUGHT = "<think>\n\n</think>\n\n"
DATES = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
LLAMA = (
    f"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n{DATES}<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nWrite f.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
)
QWEN = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
RENDERED = {
    "llama-3.1": LLAMA,
    "qwen2.5": QWEN + CHATML,
    "qwen3": CHATML + NO_THOUGHT,
    "qwen3.5-text": CHATML + NO_THOUGHT,
    "qwen3.5": CHATML + NO_THOUGHT,
}
NO_SYSTEM = {
    "refuses": "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
    "drops": "{% if messages[0].role == 'system' %}{% set messages = messages[1:] %}{% endif %}",
}


def with_template(template: str, family: str = "qwen3") -> Any:
    tokenizer = tiny_tokenizer(family)
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize("family", FAMILIES)
def test_conversations_look_as_the_family_was_taught(family: str) -> None:
    """A model answers worse, or someone else, after a header it does not know; and a begun reply must stay open."""
    tokenizer = tiny_tokenizer(family)
    chat.check_chat_template(tokenizer, family)
    assert chat.render(tokenizer, "Write f.", "") == RENDERED[family]
    assert chat.render(tokenizer, "Write f.", "```python\ndef f(") == RENDERED[family] + "```python\ndef f("


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_begin_once(family: str) -> None:
    """A second beginning-of-text token, put in by the tokenizer, is a conversation that no model has seen."""
    tokenizer = tiny_tokenizer(family)
    text = chat.render(tokenizer, "Write f.", "")
    [tokens] = chat.encode(tokenizer, [text])
    assert tokens.count(0) == (family == "llama-3.1")
    assert tokenizer.decode(tokens) == text
    assert (tokenizer(text)["input_ids"] != tokens) is (family == "llama-3.1")


@pytest.mark.parametrize("family", ["qwen3", "qwen3.5-text", "qwen3.5"])
def test_thinking_can_be_switched_on(family: str) -> None:
    """A model that plans first may write better heuristics; its answer begins after the thought, not before it."""
    tokenizer, settings = tiny_tokenizer(family), ChatSettings(thinking=True)
    chat.check_chat_template(tokenizer, family, settings)
    text = chat.render(tokenizer, "Write f.", "", settings)
    opened = "" if family == "qwen3" else "<think>\n"
    assert text == CHATML + opened
    assert chat.opening(text) == opened
    assert chat.opening(RENDERED[family]) == ""
    with pytest.raises(UserError, match="--prefill none"):
        chat.render(tokenizer, "Write f.", "def f(", settings)


def test_thinking_that_cannot_be_switched_is_refused() -> None:
    """Asked for and not there, or there and not asked for: replies would be of another sort than the settings say."""
    with pytest.raises(UserError, match=r"qwen2\.5 has no thinking mode"):
        chat.check_chat_template(tiny_tokenizer("qwen2.5"), "qwen2.5", ChatSettings(thinking=True))
    always = with_template(QWEN_35.partition("    {%- if enable_thinking")[0] + "{%- endif %}")
    with pytest.raises(UserError, match="folder always thinks before it answers"):
        chat.check_chat_template(always, "folder")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_system_text_has_its_own_turn(family: str) -> None:
    """Else it is read as part of the task, or beside the template's own."""
    tokenizer = tiny_tokenizer(family)
    text = chat.render(tokenizer, "Write f.", "", ChatSettings("Be short."))
    system, _, rest = text.partition("Write f.")
    assert system.count("Be short.") == text.count("Be short.") == 1
    assert "system" in system.partition("Be short.")[0]
    assert system.partition("Be short.")[2].count("<|") > 1
    assert "You are Qwen" not in text
    assert rest == RENDERED[family].partition("Write f.")[2]


@pytest.mark.parametrize("start", NO_SYSTEM.values(), ids=NO_SYSTEM)
def test_a_system_text_goes_before_the_task_where_there_is_no_system_role(start: str) -> None:
    """A template that drops the turn would leave the instruction out without a word; one that refuses ends the run."""
    tokenizer = with_template(start + QWEN_25.partition("{%- endif %}")[2])
    text = chat.render(tokenizer, "Write f.", "", ChatSettings("Be short."))
    assert text == "<|im_start|>user\nBe short.\n\nWrite f.<|im_end|>\n<|im_start|>assistant\n"
    assert chat.render(tokenizer, "Write f.", "") == CHATML


def test_templates_that_fail_are_named() -> None:
    """An error of a template's own ends a run that has just loaded its model for minutes."""
    with pytest.raises(UserError, match=r"folder cannot be rendered: no, never.*chat_template\.jinja"):
        chat.check_chat_template(with_template("{{ raise_exception('no, never') }}"), "folder")


def test_what_ends_a_turn_ends_a_reply() -> None:
    """A checkpoint that names only the end of a text would let the model write the user's next turn, to the limit."""
    llama = tiny_tokenizer("llama-3.1")
    end_of_text, end_of_turn = llama.convert_tokens_to_ids(["<|end_of_text|>", "<|eot_id|>"])
    assert chat.end_tokens(llama, end_of_text) == [end_of_text, end_of_turn]
    assert chat.end_tokens(llama, [end_of_turn, end_of_text]) == [end_of_turn, end_of_text]
    assert chat.end_tokens(llama, None) == [end_of_turn]
    for family in ("qwen2.5", "qwen3", "qwen3.5"):
        tokenizer = tiny_tokenizer(family)
        assert chat.end_tokens(tokenizer, 0) == [0, tokenizer.convert_tokens_to_ids("<|im_end|>")]
    for template in ("{{ messages[0].content }}", "{{ messages[-1].content }}, he said", "{{ raise_exception('') }}"):
        assert chat.end_tokens(with_template(template), 0) == [0]


def test_the_room_is_what_the_context_leaves() -> None:
    """A reply that runs beyond the context is noise; a prompt that fills it gets none, and no error."""
    assert [chat.room(tokens, 100, 20) for tokens in (1, 80, 81, 99, 100, 5000)] == [20, 20, 19, 1, 0, 0]


def test_stop_strings_are_cut_where_they_begin() -> None:
    """What follows is not part of the answer; nor is the string itself."""
    settings = ChatSettings(stop=("END", "\n\n"))
    assert chat.finished("one END two\n\nthree", False, settings) == "one "
    assert chat.finished("one\n\ntwo END", False, settings) == "one"
    assert chat.finished("one", False, settings) == "one"
    assert chat.finished("  x END\nprint()", True, settings) == "  x "
    assert chat.finished("  x\nprint() END", True, settings) == "  x"
    assert chat.has_ended("one END", False, settings)
    assert not chat.has_ended("one\ntwo", False, settings)
    assert chat.has_ended("one\ntwo", True, settings)
    with pytest.raises(UserError, match="stop string is empty"):
        ChatSettings(stop=("END", ""))


def test_the_short_template_writes_what_the_real_one_does() -> None:
    """The tests of a family are worth as much as its template is true."""
    folder = cache.complete_model("Qwen2.5-Coder-0.5B-Instruct")
    if folder is None:
        pytest.skip("Qwen2.5-Coder-0.5B-Instruct is not on this machine")
    real = AutoTokenizer.from_pretrained(folder)
    short = tiny_tokenizer("qwen2.5")
    for settings in (ChatSettings(), ChatSettings("Be short.")):
        assert chat.render(real, "Write f.", "def", settings) == chat.render(short, "Write f.", "def", settings)
    assert chat.end_tokens(real, None) == [real.convert_tokens_to_ids("<|im_end|>")]


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


SYSTEM, ASKED = Turn("system", "Be short."), Turn("user", "Write f.")
TALK = (ASKED, Turn("assistant", "def f(): ..."), Turn("user", "Shorter."))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_conversation_has_all_its_turns_in_their_order(family: str) -> None:
    """An agent would not know what it did before."""
    tokenizer = tiny_tokenizer(family)
    text = chat.render(tokenizer, (SYSTEM, *TALK), "")
    places = [text.index(words) for words in ("Be short.", "Write f.", "def f(): ...", "Shorter.")]
    assert places == sorted(places)
    assert text.endswith(chat.render(tokenizer, "Shorter.", "").partition("Shorter.")[2])
    assert chat.render(tokenizer, (ASKED,), "") == chat.render(tokenizer, "Write f.", "")
    assert chat.render(tokenizer, (SYSTEM, ASKED), "") == chat.render(
        tokenizer, "Write f.", "", ChatSettings("Be short.")
    )


@pytest.mark.parametrize("start", NO_SYSTEM.values(), ids=NO_SYSTEM)
def test_a_system_turn_goes_into_the_first_users_where_there_is_no_system_role(start: str) -> None:
    """The rules of the environment would be left out without a word, or end the training."""
    tokenizer = with_template(start + QWEN_25.partition("{%- endif %}")[2])
    text = chat.render(tokenizer, (SYSTEM, *TALK), "")
    assert text.startswith("<|im_start|>user\nBe short.\n\nWrite f.<|im_end|>\n<|im_start|>assistant\ndef f(): ...")
    assert text.count("Be short.") == 1


def test_a_system_turn_of_the_prompts_own_goes_over_the_settings() -> None:
    """A model would be told two things, or the wrong one."""
    assert chat.messages((SYSTEM, ASKED), "Be long.") == chat.messages((ASKED,), "Be short.")


@pytest.mark.parametrize("roles", ["", "s", "a", "ua", "au", "usu", "ssu", "sau", "utu"])
def test_conversations_that_nobody_could_answer_are_refused(roles: str) -> None:
    """The model would go on with its own last words, or the template's error would end the training."""
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    with pytest.raises(UserError, match=r"first and the last are the user's.*Mend the adapter's prompt"):
        chat.messages(tuple(Turn(names[role], "x") for role in roles))


@given(st.lists(st.text(), max_size=4), st.booleans())
def test_a_prompt_survives_its_json(texts: list[str], system: bool) -> None:
    """A server would answer another conversation than the one that it was sent."""
    pairs = [turn for text in texts for turn in (Turn("assistant", text), Turn("user", text))]
    prompt = (*((SYSTEM,) if system else ()), ASKED, *pairs)
    assert chat.from_json(json.loads(json.dumps(chat.as_json(prompt)))) == prompt
    assert chat.from_json(chat.as_json("Write f.")) == "Write f."


@pytest.mark.parametrize("value", [None, 3, [3], [{"role": "user"}], [{"role": "user", "content": None}], [[]]])
def test_what_is_no_prompt_is_refused(value: object) -> None:
    """A server would answer the text of a data structure."""
    with pytest.raises((KeyError, TypeError)):
        chat.from_json(value)


def test_stop_strings_of_a_request_stand_beside_those_of_the_model() -> None:
    """One of them would be written on beyond."""
    settings = ChatSettings("Be short.", stop=("END",))
    assert settings.until(("\n",)) == ChatSettings("Be short.", stop=("END", "\n"))
    assert settings.until(()) is settings
    with pytest.raises(UserError, match="stop string is empty"):
        settings.until(("",))
