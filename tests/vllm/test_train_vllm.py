"""An agent trained on real vLLM, by conversations with stop strings and a presence penalty; transformers checks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from searches import call

from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.protocol import Request, Sampling, Turn
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.transformers_model import TransformersModel

ADAPTER = '''
"""Speak in long words: a turn is one sentence, and its reward the mean length of its words."""
from train_adapters.adapter import AgentTask, Limits
from eoh_esopt.models.protocol import Turn


class Speaker:
    def __init__(self):
        self.said, self.done = [], False

    async def reset(self): ...
    async def close(self): ...

    def observe(self):
        return tuple(self.said)

    async def step(self, action):
        self.said.append(action or "")
        self.done = len(self.said) == 2

    @property
    def reward(self):
        words = " ".join(self.said).split()
        return sum(map(len, words)) / max(1, len(words)) / 10


class LongWords:
    name = "long words"

    def tasks(self, split):
        return [AgentTask(f"{split}-{i}", split, {"of": of}) for i, of in enumerate(("the sea", "a train"))]

    def limits(self, task):
        return Limits(2, 16, (".", "\\n"))

    def environment(self, task):
        return Speaker()

    def prompt(self, task, said):
        turns = [Turn("system", "You speak in one sentence."), Turn("user", f"Speak of {task.payload['of']}.")]
        for sentence in said:
            turns += [Turn("assistant", sentence), Turn("user", "Go on.")]
        return tuple(turns)

    def parse(self, reply):
        assert "." not in reply and "\\n" not in reply
        return reply or None

    async def score(self, task, environment):
        return environment.reward


def make_adapter():
    return LongWords()
'''
SETTINGS: dict[str, Any] = {
    "generations": 2,
    "directions": 3,
    "batch": 2,
    "evaluate-every": 0,
    "final-repeats": 1,
    "seed": 5,
    "temperature": 0,
    "presence-penalty": 1.5,
    "dtype": "float32",
    "scope": "norms",
}


def train(backend: str, model: Path, folder: Path) -> Path:
    """The folder of a training of the adapter above."""
    (folder / "long_words.py").write_text(ADAPTER)
    out = folder / backend
    named = {**SETTINGS, "backend": backend, "model": model, "out": out}
    call("train", folder / "long_words.py", *(part for name, value in named.items() for part in (f"--{name}", value)))
    return out


def episodes(folder: Path) -> list[Any]:
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [episode for event in events if event["event"] == "episodes" for episode in event["episodes"]]


def test_a_greedy_training_is_the_same_on_both_backends(small_model: Path, tmp_path: Path) -> None:
    """An agent trained on a server could be neither checked nor used on a laptop."""
    here, there = (train(backend, small_model, tmp_path) for backend in ("transformers", "vllm"))
    assert episodes(there) == episodes(here)
    assert {one["turns"] for one in episodes(there)} == {2}
    histories = [json.loads((folder / "history.json").read_text()) for folder in (here, there)]
    assert histories[0]["updates"] == histories[1]["updates"] != []
    assert histories[0]["final_checksum"] == histories[1]["final_checksum"] != histories[0]["base_checksum"]
    assert "The weights equal the run's." in call("replay", there)


TALK = (Turn("system", "You count."), Turn("user", "Count to nine in digits, with commas."))
MORE = (*TALK, Turn("assistant", "1, 2, 3"), Turn("user", "Go on from there."))
ASKED = [
    Request(TALK, "", 1),
    Request(TALK, "", 1, stop=("5",)),
    Request(MORE, "", 2, stop=("8", "\n")),
    Request(MORE, "1, 2,", 3, stop=(" 7",)),
    Request("Count.", "", 4, new_tokens=5),
]


def test_a_conversation_is_answered_alike(small_model: Path) -> None:
    """A reply would hold its stop string, lack its system turn or repeat itself on one backend and not on the other."""
    from eoh_esopt.models.vllm.model import VllmModel

    sampling = Sampling(temperature=0, max_new_tokens=24, presence_penalty=1.2)
    settings = ChatSettings(system="Be short.", stop=(";",))
    options: dict[str, Any] = {"sampling": sampling, "dtype": "float32", "max_batch": 8, "settings": settings}
    here = TransformersModel(small_model, scope=get_scope("full"), **options).generate(ASKED)
    model = VllmModel(small_model, scope="full", max_model_len=512, **options)
    try:
        there = model.generate(ASKED)
    finally:
        model.close()
    assert there == here
    assert there[0].text.partition("5")[0] == there[1].text
    assert there[1].new_tokens < there[0].new_tokens
    assert there[4].new_tokens == 5
    assert not any(end in reply.text for request, reply in zip(ASKED, there, strict=True) for end in request.stop)
