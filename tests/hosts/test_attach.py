"""`attach` and `detach` on objects that only look like a host's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from host_runs import put_quantised

import eoh_esopt
from eoh_esopt.hosts.attach import attach, detach
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError


class Problem:
    template_program = "def value(first, second):\n    return first\n"
    timeout = 5
    n_processes = 1


class Config:
    operators = ("e1", "m1")
    operator_weights = (1.0, 1.0)
    pop_size = 2
    n_pop = 3
    use_continue = False
    output_dir = "."


def fake_eoh(monkeypatch: pytest.MonkeyPatch, *, arguments: str = "self, population, operators") -> Any:
    """An object of a module that has what the plug-in takes hold of in EoH 0.2."""
    source = f"""
class InterfaceLLM: pass
def population_management(pop, size): pass
def _eval_with_timeout(problem, code, timeout): pass
class Evolution:
    def get_algorithm({arguments}): pass
    def evaluate_seeds(self, seeds): pass
    def _generate(self, population, operator): pass
    def _extract(self, response): pass
    def _is_duplicate(self, population, code): pass
class EOH:
    def _init_population(self): pass
    _record = _save = _save_checkpoint = _flush_samples = _log_header = run = _init_population
class EoH:
    def __init__(self, config, problem): self._config, self._problem = config, problem
    def run(self): return "as ever"
"""
    module = ModuleType("fake_eoh")
    exec(source, module.__dict__)
    for value in vars(module).values():
        if isinstance(value, type):
            value.__module__ = "fake_eoh"
    monkeypatch.setitem(sys.modules, "fake_eoh", module)
    return module.EoH(Config(), Problem())


def test_host_is_found_by_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a renamed package, or a class derived from the host's, could not be attached to."""
    host = fake_eoh(monkeypatch)
    derived = type("Mine", (type(host),), {})(Config(), Problem())
    for one in (host, derived):
        attach(one, model=ScriptedModel())
        assert vars(one)["run"] is not type(one).run


def test_detach_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a search that was attached once would never be the user's own again."""
    host = fake_eoh(monkeypatch)
    before = dict(vars(host))
    attach(host, model=ScriptedModel())
    detach(host)
    assert vars(host) == before
    assert host.run() == "as ever"
    with pytest.raises(UserError, match="not attached"):
        detach(host)


def test_refused_attach_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a mistake in the settings would leave a search that is half attached."""
    host = fake_eoh(monkeypatch)
    before = dict(vars(host))
    with pytest.raises(UserError):
        attach(host, model=ScriptedModel(), schedule="mine")
    assert vars(host) == before


@pytest.mark.parametrize("stranger", [object(), "eoh", [1], Config(), ScriptedModel()])
def test_strangers_are_named_with_what_is_supported(stranger: object) -> None:
    """Without it a user of another engine gets an AttributeError from the depth of an adapter."""
    with pytest.raises(UserError) as error:
        attach(stranger, model="SmolLM2-135M-Instruct")
    assert type(stranger).__qualname__ in str(error.value)
    assert "EoH 0.2" in str(error.value)
    assert "EoH 0.1" in str(error.value)


def test_host_with_other_seams_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a later version of a host would fail somewhere in the middle of a search."""
    host = fake_eoh(monkeypatch, arguments="self, population, operators, island")
    with pytest.raises(UserError, match=r"get_algorithm.*takes \(self, population, operators, island\)"):
        attach(host, model=ScriptedModel())


@pytest.mark.parametrize("model", ["no-such-model-anywhere", "./nowhere", "/nowhere/at/all", ""])
def test_unknown_models_are_refused_at_once(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Without it a misspelt model shows after the search has begun."""
    with pytest.raises(UserError):
        attach(fake_eoh(monkeypatch), model=model)


def test_quantised_models_are_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without it the search would begin with weights of which directions move a part, or end in a traceback."""
    put_quantised(tmp_path / "quantised")
    with pytest.raises(UserError, match=r"quantised \(gptq\)"):
        attach(fake_eoh(monkeypatch), model=str(tmp_path / "quantised"))


def test_package_offers_both_without_loading_anything() -> None:
    """Without it every import of the package would load PyTorch."""
    assert eoh_esopt.attach is attach
    assert eoh_esopt.detach is detach
    with pytest.raises(AttributeError):
        _ = eoh_esopt.no_such_name
    program = "import eoh_esopt, sys; print('torch' in sys.modules or 'numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
