"""A search of two generations on a host's own loop, with a scripted model: whether the plug-in works with this host.

Run as `python -m eoh_esopt.hosts.dry_run ADAPTER` in an empty folder; its last line is JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import types
from dataclasses import astuple
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.hosts.attach import attach
from eoh_esopt.hosts.host import Seam
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError

GENERATIONS = 2
POPULATION = 8

_TASK = "Find a function whose value is near 100."
_TEMPLATE = "import numpy as np\n\n\ndef value(first: float, second: float) -> float:\n    return first\n"


def check(adapter: str) -> dict[str, Any]:
    """Look for the seams that an adapter needs, and search where all are there.

    Returns:
        "seams": of each its name, whether it is there, and what is there instead; "error"; "run".
    """
    module = importlib.import_module(f"eoh_esopt.hosts.{adapter}")
    report: dict[str, Any] = {"seams": [], "error": "", "run": None}
    try:
        seams: list[Seam] = module.seams(importlib.import_module(module.MODULE))
    except ImportError as error:
        return {**report, "error": f"{module.MODULE} cannot be imported: {error}"}
    report["seams"] = [astuple(seam) for seam in seams]
    if not all(seam.found for seam in seams):
        return {**report, "error": "seams are missing: it is another version, or a fork"}
    try:
        report["run"] = _search(_HOSTS[adapter]())
    except UserError as error:
        report["error"] = str(error)
    except Exception as error:  # noqa: BLE001 - of the host's code, which is what this is to find out
        report["error"] = f"the dry run failed: {type(error).__name__}: {error}"
    return report


def _search(host: Any) -> dict[str, Any]:
    model, folder = ScriptedModel(), Path("esopt")
    began = time.monotonic()
    attach(host, model=model, directions=2, reward="ordered", output=folder, notify=lambda _: None)
    host.run()
    summary = json.loads((folder / events.SUMMARY).read_text())
    batches = [one for one in events.read_events(folder) if one["event"] == "batch"]
    return {
        "generations": len({one["generation"] for one in batches if one["generation"] >= 0}),
        **{name: summary["ledger"][name] for name in ("candidates", "valid", "model_calls", "evaluations", "updates")},
        "learnt": summary["weights_before"] != summary["weights_after"],
        "seconds": round(time.monotonic() - began, 1),
    }


def _distance(value: float) -> float:
    return abs(value - 100.0)


def _eoh02() -> Any:
    from eoh import BaseProblem, EoH, LLMConfig

    class Near(BaseProblem):  # type: ignore[misc]
        template_program = _TEMPLATE
        task_description = _TASK

        def evaluate_program(self, program_str: str, callable_func: Any) -> float:
            return _distance(callable_func(1.0, 2.0))

    llm = LLMConfig(api_endpoint="localhost", api_key="none", model="none")
    return EoH(llm=llm, problem=Near(), pop_size=POPULATION, n_pop=GENERATIONS, output_dir=".")


def _eoh01() -> Any:
    from eoh import eoh
    from eoh.utils.getParas import Paras

    prompts = {
        "get_task": _TASK,
        "get_func_name": "value",
        "get_func_inputs": ["first", "second"],
        "get_func_outputs": ["result"],
        "get_inout_inf": "All are numbers.",
        "get_other_inf": "",
    }

    class Near:
        def __init__(self) -> None:
            self.prompts = types.SimpleNamespace(**{name: lambda text=text: text for name, text in prompts.items()})

        def evaluate(self, code: str) -> float:
            module = types.ModuleType("heuristic")
            exec(code, module.__dict__)
            return _distance(module.value(1.0, 2.0))

    paras = Paras()
    paras.set_paras(
        method="eoh",
        problem=Near(),
        llm_api_endpoint="localhost",
        llm_api_key="none",
        llm_model="none",
        ec_pop_size=POPULATION,
        ec_n_pop=GENERATIONS,
        exp_n_proc=1,
        exp_output_path=".",
    )
    return eoh.EVOL(paras)


def _llm4ad() -> Any:
    from llm4ad.base import LLM, Evaluation
    from llm4ad.method.eoh import EoH, EoHProfiler

    from eoh_esopt.hosts.llm4ad import START_GENERATIONS

    class Near(Evaluation):  # type: ignore[misc]
        def evaluate_program(self, program_str: str, callable_func: Any, **kwargs: Any) -> float:
            return -_distance(callable_func(1.0, 2.0))

    return EoH(
        llm=LLM(),
        evaluation=Near(template_program=_TEMPLATE, task_description=_TASK, timeout_seconds=20),
        profiler=EoHProfiler(log_dir=".", create_random_path=False, log_style="simple"),
        pop_size=POPULATION,
        max_generations=START_GENERATIONS + GENERATIONS,
        max_sample_nums=100,
    )


_HOSTS = {"eoh02": _eoh02, "eoh01": _eoh01, "llm4ad": _llm4ad}


if __name__ == "__main__":
    found = check(sys.argv[1])
    print()
    print(json.dumps(found))
