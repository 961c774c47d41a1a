"""A user's script for LLM4AD: a problem, a search, and the two lines of the plug-in."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import re
import sys
import time
import warnings

import numpy as np
from llm4ad.base import LLM, Evaluation
from llm4ad.method.eoh import EoH, EoHProfiler
from llm4ad.method.eoh.resume import resume_eoh

TEMPLATE = '''
import numpy as np

def value(first: float, second: float) -> float:
    """A number from two numbers."""
    return first
'''


class Unused(LLM):
    """What the user had before; it must not be asked."""

    def draw_sample(self, prompt, *args, **kwargs):
        raise AssertionError("the host's own model was asked")


class Near(Evaluation):
    """Scores are the better the larger they are."""

    template = TEMPLATE

    def __init__(self, timeout_seconds=10, **named):
        super().__init__(
            template_program=self.template,
            task_description="Find a function whose value is near 100.",
            timeout_seconds=timeout_seconds,
            **named,
        )

    def evaluate_program(self, program_str, callable_func, **kwargs):
        return -abs(callable_func(1.0, 2.0) - 100.0)


class Raising(Near):
    def evaluate_program(self, program_str, callable_func, **kwargs):
        with open("no_such_data.npy") as file:
            return float(file.read())


class NoTemplate(Near):
    template = "def value(first, second):\n    raise NotImplementedError\n"


class Constant(Near):
    """Every candidate is a duplicate of the first, and its score is one that is easily taken for none."""

    def evaluate_program(self, program_str, callable_func, **kwargs):
        callable_func(1.0, 2.0)
        return 0.0


def helpers(request, number):
    """A program with an import, a constant and a function beside the one that is asked for."""
    name = re.findall(r"def (\w+)\(", request.prompt)[-1]
    return (
        f"{{With a helper.}}\n```python\nimport math\nimport numpy as np\nWEIGHT = {number % 997}\n"
        f"def weighed(x):\n    return WEIGHT * math.sqrt(x)\n\n"
        f"def {name}(a, b):\n    return a + weighed(b)\n```\n"
    )


def global_state() -> dict[str, str]:
    """What must be the same before and after."""
    root = logging.getLogger()
    state = {
        "start method": multiprocessing.get_start_method(allow_none=True),
        "warnings": warnings.filters,
        "random": random.getstate(),
        "numpy": [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],  # noqa: NPY002
        "logging": (root.level, root.handlers),
        "prompts": vars(sys.modules["llm4ad.method.eoh.eoh"])["EoHPrompt"],
    }
    return {name: repr(value) for name, value in state.items()}


def host_of(folder: str, options: dict) -> EoH:
    problem = globals()[options.get("problem", "Near")](**options.get("task", {}))
    profiler = None
    if options.get("profiler", True):
        profiler = EoHProfiler(log_dir=f"{folder}/results", create_random_path=False, log_style="simple")
    given = {"pop_size": 4, "max_generations": 5, "max_sample_nums": 60, **options.get("eoh", {})}
    host = EoH(llm=Unused(), evaluation=problem, profiler=profiler, **given)
    if options.get("resume"):
        resume_eoh(host, f"{folder}/results")
    return host


def search(folder: str, options: dict) -> dict:
    import writers

    from eoh_esopt import attach, detach
    from eoh_esopt.testing.scripted_model import ScriptedModel
    from operators.errors import UserError

    host = host_of(folder, options)
    name = options.get("writer", "valid")
    model = ScriptedModel(globals().get(name) or getattr(writers, name))
    usual = {"model": model, "schedule": "paper", "directions": 4, "reward": "paper"}
    arguments = {**usual, **options.get("attach", {})}
    multiprocessing.set_start_method("fork", force=True)  # LLM4AD has set another
    np.random.seed(int.from_bytes(os.urandom(4), "little"))  # noqa: NPY002 - another one each time, as without a seed
    before, attributes = global_state(), set(vars(host))
    said: list[str] = []
    began, error = time.monotonic(), ""
    try:
        for _ in range(options.get("times", 1)):
            attach(host, notify=said.append, **arguments)
        for _ in range(options.get("runs", 1)):
            host.run()
        detach(host)
        if options.get("again"):
            attach(host, **arguments)
    except UserError as problem_of_user:
        error = str(problem_of_user)
    after = global_state()
    return {
        "said": said,
        "error": error,
        "seconds": time.monotonic() - began,
        "changed": [name for name in before if before[name] != after[name]],
        "same_object": set(vars(host)) == attributes,
        "calls": len(model.requests),
        "prompts": [request.prompt for request in model.requests],
        "batches": model.batch_sizes,
        "updates": len(model.updates),
        "counted": host._tot_sample_nums,
        "generation": host._population.generation,
        "scores": [repr(float(one.score)) for one in host._population.population],
    }


if __name__ == "__main__":
    results = {folder: search(folder, options) for folder, options in json.loads(sys.argv[1]).items()}
    print()
    print(json.dumps(results))
