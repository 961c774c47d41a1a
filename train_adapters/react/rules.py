"""What the model is told: the rules of the loop, and what it hears when it breaks them."""

from __future__ import annotations

from train_adapters.react.actions import SHELL

ACTION = 'Action: {"name": "bash", "command": "<shell command>"}'
"""The form that is asked for."""

STOP = ("Observation:", "Observation from")
"""Ends a reply that goes on to invent what the tool shows."""


def system_text(role: str, files: str = "", answer: str = "Final answer: <your answer>", notes: str = "") -> str:
    """The system turn: the loop's rules around an adapter's own sentences.

    Args:
        role: what the model is, in a sentence.
        files: what lies in the working folder and which programs help; a paragraph.
        answer: the line that ends an episode.
        notes: further rules of the task; a paragraph.
    """
    rules = (
        "You work in turns. In each turn, think briefly, then do exactly one of two things.\n"
        f"To run a shell command, end your turn with one line of this form, with valid JSON:\n{ACTION}\n"
        "Its output comes back to you in the next turn. Never write that output yourself. Files that you make stay for "
        "later commands; programs that you leave running do not. There is no network.\n"
        f"When you know the answer, end your turn with one line of this form:\n{answer}\n"
        "You must run at least one command before you answer."
    )
    return "\n\n".join(part.strip() for part in (role, rules, files, notes) if part.strip())


def observation(tool: str, text: str) -> str:
    """The user turn that shows what a tool has put out."""
    return f"Observation from {tool}:\n{text}"


def nothing_found() -> str:
    """For a reply that asks for nothing."""
    return (
        "Your turn had neither an action nor a final answer that could be read. End it with one line of the form\n"
        f"{ACTION}\nor with the final answer line."
    )


def tool_first() -> str:
    """For an answer before any call."""
    return f"You have not run a command yet. Run one to work out or check your answer first:\n{ACTION}"


def unknown_tool(name: str) -> str:
    """For a call of something else."""
    return f"There is no tool {name[:60]!r}. The only one is {SHELL}:\n{ACTION}"


def no_command() -> str:
    """For a call that says nothing."""
    return f"The action has no command. Its form is:\n{ACTION}"
