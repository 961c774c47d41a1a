"""trl's trainer with episodes of several turns: its loss, reference model, optimiser and checkpoints; our rollouts.

trl's own ways to play (`environment_factory`, `rollout_func`) take an episode for one sequence of tokens, written with
trl's prompts and sampler. Here the rollouts are those of the training by evolution strategies, each reply is an
example, and how many there are differs from step to step; so what prepares a batch and what goes over it is replaced.
Import it only after `check_library`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from eoh_esopt.models.protocol import Sampling
from train_adapters.grpo.config import GrpoConfig
from train_adapters.grpo.examples import Example, Pass, minibatches, passes

Batch = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Learning:
    """One step, after its last update.

    Attributes:
        step: from 0.
        seconds: of wall time, rollouts and updates.
        examples: replies that were learnt from.
        loss: mean over the updates.
        divergence: mean over the tokens, from the model as it was before the training; None without beta.
        clipped: share of the tokens whose ratio was clipped.
    """

    step: int
    seconds: float
    examples: int
    loss: float
    divergence: float | None
    clipped: float


@dataclass(frozen=True)
class StepParts:
    """What a step is made of.

    Attributes:
        rollouts: plays a step, given its number and the places of its tasks, and says what to learn from.
        order: the random order of a step's examples, given its number.
        told: hears of a step that is over.
    """

    rollouts: Callable[[int, Sequence[int]], list[Example]]
    order: Callable[[int], np.random.Generator]
    told: Callable[[Learning], None]


def trl_config(grpo: GrpoConfig, sampling: Sampling, folder: Path, seed: int, dtype: str) -> Any:
    """Settings of trl's trainer.

    Args:
        grpo: of the baseline, its steps filled in.
        sampling: how tokens are drawn; probabilities are taken at its temperature.
        folder: for checkpoints.
        seed: of the run; trl's takes 32 bits of it. Nothing that is learnt depends on it, since tasks, tokens and the
            order of examples have streams of their own.
        dtype: of the model in the other arm. The weights are trained in float32, and passes compute in this.
    """
    assert grpo.steps is not None
    with warnings.catch_warnings():  # newer releases of transformers have another name for gradient_checkpointing
        warnings.simplefilter("ignore", FutureWarning)
        return _config(grpo, grpo.steps, sampling, folder, seed, dtype)


def _config(grpo: GrpoConfig, steps: int, sampling: Sampling, folder: Path, seed: int, dtype: str) -> Any:
    return GRPOConfig(
        output_dir=str(folder),
        max_steps=steps * grpo.minibatches,
        per_device_train_batch_size=grpo.step_rollouts // grpo.minibatches,
        steps_per_generation=grpo.minibatches,
        gradient_accumulation_steps=1,
        num_generations=grpo.group,
        learning_rate=grpo.learning_rate,
        lr_scheduler_type="constant",
        beta=grpo.beta,
        epsilon=grpo.clip,
        loss_type="dapo",  # a sum over tokens: it does not depend on how examples are dealt out to passes
        temperature=sampling.temperature,
        max_completion_length=sampling.max_new_tokens,
        shuffle_dataset=False,
        seed=seed % 2**32,
        data_seed=seed % 2**32,
        gradient_checkpointing=grpo.gradient_checkpointing,
        disable_dropout=True,
        bf16=dtype == "bfloat16",
        fp16=dtype == "float16",
        use_cpu=not torch.cuda.is_available(),
        save_steps=grpo.checkpoint_every * grpo.minibatches,
        save_total_limit=1,
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


class EpisodesTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPO over the replies of episodes.

    Args:
        model: of transformers, in float32; read from its folder, from which the reference model is read too.
        tokenizer: its own.
        args: see `trl_config`.
        grpo: of the baseline, its steps filled in.
        tasks: places of the tasks of all steps, one after the other.
        parts: of a step.
    """

    def __init__(
        self, model: Any, tokenizer: Any, args: Any, grpo: GrpoConfig, tasks: Sequence[int], parts: StepParts
    ) -> None:
        super().__init__(
            model=model,
            reward_funcs=[_no_reward],
            args=args,
            train_dataset=Dataset.from_list([{"prompt": "", "task": place} for place in tasks]),
            processing_class=tokenizer,
            callbacks=[_Clock(self)],
        )
        self.remove_callback(PrinterCallback)  # steps are told to `parts`
        self._grpo = grpo
        self._parts = parts
        self._minibatches: list[list[Batch]] = []
        self._examples = 0
        self._losses: list[float] = []
        self.seconds = 0.0

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """The gradient of one minibatch, pass by pass.

        Returns:
            Its loss.
        """
        number = self.state.global_step % self._grpo.minibatches
        if number == 0:
            self._minibatches = self._played(inputs)
        model.train()
        total = torch.zeros((), device=self.accelerator.device)
        for batch in self._minibatches[number]:
            with self.compute_loss_context_manager():
                loss = self.compute_loss(model, batch)
            self.accelerator.backward(loss)
            total += loss.detach()
        self._step += 1
        self._losses.append(float(total))
        return total

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None: checkpoints are for going on, not for others."""

    def _send_telemetry(self) -> None:
        """Not sent."""

    def end_update(self, seconds: float) -> None:
        """Take the time of an update; after the last one of a step, tell of the step."""
        self.seconds += seconds
        if len(self._losses) < self._grpo.minibatches:
            return
        metrics = self._metrics["train"]
        learning = Learning(
            step=self.state.global_step // self._grpo.minibatches - 1,
            seconds=self.seconds,
            examples=self._examples,
            loss=float(np.mean(self._losses)),
            divergence=float(np.mean(metrics["kl"])) if metrics["kl"] else None,
            clipped=float(np.mean(metrics["clip_ratio/region_mean"])) if self._examples else 0.0,
        )
        metrics.clear()
        self._losses, self.seconds = [], 0.0
        self._parts.told(learning)

    def _played(self, rows: Sequence[Mapping[str, Any]]) -> list[list[Batch]]:
        """The rollouts of a step as minibatches of passes."""
        step = self.state.global_step // self._grpo.minibatches
        self.model.train(False)
        examples = self._parts.rollouts(step, [row["task"] for row in rows[:: self._grpo.group]])
        self._examples = len(examples)
        tokens = torch.tensor(sum(len(one.drawn) for one in examples), device=self.accelerator.device)
        padding = self.processing_class.pad_token_id
        dealt = minibatches(examples, self._grpo.minibatches, self._parts.order(step))
        return [[self._batch(one, tokens) for one in passes(mine, self._grpo.pass_rows, padding)] for mine in dealt]

    @torch.no_grad()
    def _batch(self, one: Pass, tokens: torch.Tensor) -> Batch:
        """A pass as trl's loss takes it, with the probabilities of the models that do not move in this step."""
        device = self.accelerator.device
        batch = {
            "prompt_ids": one.prompts.to(device),
            "prompt_mask": one.prompts_mask.to(device),
            "completion_ids": one.drawn.to(device),
            "completion_mask": one.drawn_mask.to(device),
            "advantages": one.advantages.to(device),
            "num_items_in_batch": tokens,
        }
        if self._grpo.minibatches > 1:  # else they are those of the model itself
            batch["old_per_token_logps"] = self._log_probabilities(self.model, batch)
        if self.ref_model is not None:
            batch["ref_per_token_logps"] = self._log_probabilities(self.ref_model, batch)
        return batch

    def _log_probabilities(self, model: Any, batch: Batch) -> torch.Tensor:
        found: torch.Tensor = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            batch["completion_ids"].size(1),
        )[0]
        return found


class _Clock(TrainerCallback):
    """Takes the time of updates, that of checkpoints left out; and wants no checkpoint where the training ends."""

    def __init__(self, trainer: EpisodesTrainer) -> None:
        self._trainer = trainer
        self._began = 0.0

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        self._began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self._trainer.end_update(time.perf_counter() - self._began)
        control.should_save = control.should_save and state.global_step < state.max_steps
        return control


def _no_reward(*args: Any, **kwargs: Any) -> list[float]:
    """trl asks for a reward function; rewards come with the examples here, so it is never called."""
    raise AssertionError("rewards come with the examples")
