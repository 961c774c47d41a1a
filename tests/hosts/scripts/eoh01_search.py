"""A user's script for EoH 0.1: a problem, a search, and the two lines of the plug-in. It has no `__main__` guard."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import random
import sys
import time
import types
import warnings

import numpy as np
import writers
from eoh import eoh
from eoh.utils.getParas import Paras

from eoh_esopt import attach, detach
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError


class Prompts:
    def get_task(self):
        return "Find a function whose value is near 100."

    def get_func_name(self):
        return "value"

    def get_func_inputs(self):
        return ["first", "second"]

    def get_func_outputs(self):
        return ["result"]

    def get_inout_inf(self):
        return "All are numbers."

    def get_other_inf(self):
        return ""


class Near:
    def __init__(self):
        self.prompts = Prompts()
        self.cannot_be_pickled = lambda: None

    def evaluate(self, code):
        module = types.ModuleType("heuristic")
        exec(code, module.__dict__)
        return abs(module.value(1.0, 2.0) - 100.0)


class Raising(Near):
    def evaluate(self, code):
        with open("no_such_data.npy") as file:
            return float(file.read())


def global_state() -> dict[str, str]:
    """What must be the same before and after."""
    parts = {
        "start method": multiprocessing.get_start_method(allow_none=True),
        "warnings": warnings.filters,
        "random": random.getstate(),
        "numpy": [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],  # noqa: NPY002
        "modules": [vars(importlib.import_module(name)).get(one) for name, one in BORROWED],
    }
    return {name: repr(part) for name, part in parts.items()}


BORROWED = [("eoh.methods.eoh.eoh", "InterfaceEC"), ("eoh.methods.eoh.eoh_evolution", "InterfaceLLM")]


def search(folder: str, options: dict) -> dict:
    """One search, and what became of it."""
    paras = Paras()
    settings = {"ec_pop_size": 4, "ec_n_pop": 3, "exp_n_proc": 2, "eva_timeout": 10, **options.get("paras", {})}
    weights = settings.pop("ec_operator_weights", None)
    paras.set_paras(
        **{
            "method": "eoh",
            "problem": globals()[options.get("problem", "Near")](),
            "llm_api_endpoint": "api.nowhere.test",
            "llm_api_key": "sk-xxx",
            "llm_model": "none",
            "exp_output_path": folder,
            **settings,
        }
    )
    if weights is not None:
        paras.ec_operator_weights = weights  # set_paras of EoH 0.1 fails on them
    evolution = eoh.EVOL(paras)
    model = ScriptedModel(getattr(writers, options.get("writer", "valid")))
    arguments = {"model": model, "directions": 4, "reward": "paper", **options.get("attach", {})}
    before, attributes = global_state(), dict(vars(evolution))
    said: list[str] = []
    began = time.monotonic()
    error = ""
    try:
        for _ in range(options.get("times", 1)):
            attach(evolution, notify=said.append, **arguments)
        for _ in range(options.get("runs", 1)):
            evolution.run()
        detach(evolution)
        if options.get("again"):
            attach(evolution, **arguments)
    except UserError as problem_of_user:
        error = str(problem_of_user)
    after = global_state()
    return {
        "said": said,
        "error": error,
        "seconds": time.monotonic() - began,
        "changed": [name for name in before if before[name] != after[name]],
        "same_object": vars(evolution) == attributes,
        "calls": len(model.requests),
        "batches": model.batch_sizes,
        "updates": len(model.updates),
    }


results = {folder: search(folder, options) for folder, options in json.loads(sys.argv[1]).items()}
print()
print(json.dumps(results))
