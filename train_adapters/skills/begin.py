"""What a training's skill begins with: the user's file, and the endpoint that revises it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eoh_esopt.engine.run import Notify
from eoh_esopt.models.openai_model import OpenAIModel
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError
from train_adapters.config import TrainConfig
from train_adapters.skills.versions import Skill, read_skill

DRAWN = Sampling(temperature=0.7, top_p=0.95, top_k=50)
"""How an endpoint draws tokens; the model in training draws them as it plays."""


def begun_with(config: TrainConfig) -> tuple[TrainConfig, str]:
    """The settings with the skill's file as an absolute path and the hash of its text, and the text; empty for none.

    Raises:
        UserError: the file cannot be used.
    """
    if config.skill is None:
        return config, ""
    path = Path(config.skill).expanduser().resolve()
    text = read_skill(path)
    return replace(config, skill=str(path), skill_sha256=Skill(0, text).sha256), text


def check_begun_with(config: TrainConfig, out: Path) -> None:
    """Refuse a skill's file that is not as it was when a training began: the training would go on with the text it had.

    A file that is no longer there is no matter: the training's folder has a copy.

    Raises:
        UserError: it names the file and both hashes.
    """
    if config.skill is None or not Path(config.skill).exists():
        return
    now = Skill(0, read_skill(Path(config.skill))).sha256
    if now != config.skill_sha256:
        raise UserError(
            f"The skill {config.skill} has changed since the training in {out} began: its hash was "
            f"{str(config.skill_sha256)[:12]}, and is {now[:12]} now. Bring it back, or begin a new training."
        )


def endpoint(
    name: str, base_url: str, new_tokens: int, notify: Notify, *, timeout_s: float = 120.0, max_batch: int = 64
) -> OpenAIModel:
    """A model behind an endpoint that revises skills, asked for a word.

    Raises:
        UserError: the address, the key or the name is wrong, or it does not answer.
    """
    sampling = replace(DRAWN, max_new_tokens=new_tokens)
    model = OpenAIModel(name, base_url, sampling=sampling, timeout_s=timeout_s, max_batch=max_batch)
    notify(f"Asking {name} for a word: it revises the skill")
    model.check()
    return model
