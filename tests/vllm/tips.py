"""An adapter for short trainings: tips as a list are asked for, and the reward is the mean length of their words."""

from __future__ import annotations

from train_adapters.adapter import AgentTask, Limits


class OneReply:
    """An episode of one turn."""

    def __init__(self) -> None:
        self._said = ""
        self.done = False

    async def reset(self) -> None: ...

    async def close(self) -> None: ...

    def observe(self) -> None: ...

    async def step(self, action: str) -> None:
        self._said, self.done = action, True

    @property
    def reward(self) -> float:
        words = self._said.split()
        return sum(map(len, words)) / max(1, len(words)) / 10


class Tips:
    """Two tasks to learn from, none to evaluate on."""

    name = "tips"

    def tasks(self, split: str) -> list[AgentTask]:
        subjects = ("reading", "counting") if split == "train" else ()
        return [AgentTask(of, split, {"of": of}) for of in subjects]

    def limits(self, task: AgentTask) -> Limits:
        return Limits(1, 24)

    def environment(self, task: AgentTask) -> OneReply:
        return OneReply()

    def prompt(self, task: AgentTask, observation: None) -> str:
        return f'Write three short tips for {task.payload["of"]}, each on a line that begins with "- ".'

    def parse(self, reply: str) -> str:
        return reply

    async def score(self, task: AgentTask, environment: OneReply) -> float:
        return environment.reward


def make_adapter() -> Tips:
    return Tips()
