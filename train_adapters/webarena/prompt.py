"""What the model is told: the rules once, then the task, what was done so far, and the page."""

from __future__ import annotations

from eoh_esopt.models.protocol import Prompt, Turn
from train_adapters.webarena.environment import Observation
from train_adapters.webarena.page_view import cut

_RULES = """You operate a web browser to carry out a task. You see the current page as {view}; elements that can be acted on have an id. Answer with exactly one action:

do(action="Click", element="9")
do(action="Right Click", element="23")
do(action="Type", element="14", argument="text")
do(action="Search", element="14", argument="text")  types the text and presses Enter
do(action="Select Dropdown Option", element="31", argument="option")
do(action="Hover", element="23")
do(action="Scroll Down")
do(action="Scroll Up")
do(action="Press Enter")
do(action="Wait")
go_backward()
go_forward()
exit(message="answer")  when the task is done; the message is the answer to the task's question, or empty

Use the ids of the page shown last in place of these numbers. Do not repeat an action that changed nothing."""  # noqa: E501
_VIEWS = {"html": "simplified HTML", "axtree": "its accessibility tree"}
_LAST_ACTIONS = 10


def prompt(seen: Observation, view: str, page_chars: int, advice: str) -> Prompt:
    """The conversation: the rules as the system's turn, at whose end is room for a skill, the state as the user's.

    Args:
        seen: the state.
        view: "html" or "axtree".
        page_chars: as much of the page is shown.
        advice: of the tasks' source on answers; may be empty.
    """
    system = "\n\n".join(part for part in (_RULES.format(view=_VIEWS[view]), advice) if part)
    past = seen.actions[-_LAST_ACTIONS:]
    parts = [
        f"Task: {seen.goal}",
        "Actions so far:\n" + "\n".join(past) if past else "",
        f"Problem with the last one: {seen.feedback}" if seen.feedback else "",
        f"Page: {seen.title} ({seen.url})",
        cut(seen.page, page_chars, seen.element, seen.scrolled),
        "Your action:",
    ]
    return Turn("system", system), Turn("user", "\n\n".join(part for part in parts if part))
