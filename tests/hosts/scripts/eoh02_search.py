"""A user's script for EoH 0.2: a problem, a search, and the two lines of the plug-in."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import sys
import time
import warnings

import numpy as np
from eoh import BaseProblem, EoH, LLMConfig


class Near(BaseProblem):
    template_program = '''
import numpy as np

def value(first: float, second: float) -> float:
    """A number from two numbers."""
    return first
'''
    task_description = "Find a function whose value is near 100."

    def evaluate_program(self, program_str, callable_func):
        return abs(callable_func(1.0, 2.0) - 100.0)


class Raising(Near):
    def evaluate_program(self, program_str, callable_func):
        with open("no_such_data.npy") as file:
            return float(file.read())


class NoTemplate(Near):
    template_program = "def value(first, second):\n    raise NotImplementedError\n"


class Kind(Near):
    template_program = "class Value:\n    def value(self, first, second):\n        return first\n"

    def evaluate_program(self, program_str, callable_func):
        return abs(callable_func().value(1.0, 2.0) - 100.0)


class Several(Near):
    template_program = "def weight(first):\n    return first\n\ndef value(first, second):\n    return weight(first)\n"


class Tour(BaseProblem):
    """Small models fail at it in several ways, so that they have something to learn."""

    template_program = '''
import numpy as np

def next_node(current_node: int, start_node: int, unvisited_nodes: np.ndarray, distances: np.ndarray) -> int:
    """Select the next node to visit in a tour."""
    return unvisited_nodes[np.argmin(distances[current_node][unvisited_nodes])]
'''
    task_description = "Find the shortest tour. Design a novel rule to select the next node to visit in each step."

    def evaluate_program(self, program_str, callable_func):
        points = np.random.default_rng(1).random((12, 2))
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        tour = [0]
        while len(tour) < len(points):
            left = np.setdiff1d(np.arange(len(points)), tour)
            node = callable_func(tour[-1], 0, left, distances)
            if node not in left:
                return None
            tour.append(int(node))
        return sum(distances[one, two] for one, two in zip(tour, [*tour[1:], 0], strict=True))


def global_state() -> dict[str, str]:
    """What must be the same before and after."""
    root = logging.getLogger()
    parts = {
        "start method": multiprocessing.get_start_method(allow_none=True),
        "warnings": warnings.filters,
        "random": random.getstate(),
        "numpy": [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],  # noqa: NPY002
        "logging": (root.level, root.handlers),
        "modules": [vars(sys.modules[name]).get(one) for name, one in BORROWED],
        "files": open_files(),
    }
    return {name: repr(part) for name, part in parts.items()}


def open_files() -> list[str]:
    """What this process has open, but for the log that EoH itself never closes."""
    if not os.path.isdir("/proc/self/fd"):
        return []
    fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    targets = [os.readlink(fd) for fd in fds if os.path.exists(fd)]
    return sorted(target for target in targets if not target.endswith("run_log.txt") and not target.startswith("/proc"))


BORROWED = [("eoh.eoh.eoh", "Evolution"), ("eoh.eoh.evolution", "InterfaceLLM"), ("eoh.run", "EOH")]


def search(folder: str, options: dict) -> dict:
    """One search, and what became of it."""
    import writers

    from eoh_esopt import attach, detach
    from eoh_esopt.testing.scripted_model import ScriptedModel
    from operators.errors import UserError

    problem = globals()[options.get("problem", "Near")](**{"timeout": 10, **options.get("task", {})})
    sizes = {"pop_size": 4, "n_pop": 3, "output_dir": folder, **options.get("eoh", {})}
    eoh = EoH(llm=LLMConfig("api.nowhere.test", "sk-xxx", "none"), problem=problem, **sizes)
    model = ScriptedModel(getattr(writers, options.get("writer", "valid")))
    arguments = {"model": model, "schedule": "paper", "directions": 4, "reward": "paper", **options.get("attach", {})}
    before, attributes = global_state(), dict(vars(eoh))
    said: list[str] = []
    began = time.monotonic()
    error = ""
    try:
        for _ in range(options.get("times", 1)):
            attach(eoh, notify=said.append, **arguments)
        for _ in range(options.get("runs", 1)):
            eoh.run()
        detach(eoh)
        if options.get("again"):
            attach(eoh, **arguments)
    except UserError as problem_of_user:
        error = str(problem_of_user)
    after = global_state()
    return {
        "said": said,
        "error": error,
        "seconds": time.monotonic() - began,
        "changed": [name for name in before if before[name] != after[name]],
        "same_object": vars(eoh) == attributes,
        "calls": len(model.requests),
        "batches": model.batch_sizes,
        "updates": len(model.updates),
    }


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    results = {folder: search(folder, options) for folder, options in json.loads(sys.argv[1]).items()}
    print()
    print(json.dumps(results))
