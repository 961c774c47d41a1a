"""Before the model is asked for the first time: does the user's evaluation work at all?

The host's template is evaluated, where there is one. Where it gives no number, a program that does nothing tells
whether the evaluation fails before it ever calls what it is to evaluate: then no candidate could succeed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from eoh_esopt.engine.ahead import Evaluates
from eoh_esopt.hosts.host import HostFacts
from eoh_esopt.hosts.trial import PROBE
from operators.errors import UserError
from operators.records import Outcome, Status


def check_evaluation(
    facts: HostFacts, evaluator: Evaluates, notify: Callable[[str], None], *, probe: bool = True
) -> None:
    """Evaluate what is known to be a program, and say what is wrong.

    Args:
        facts: of the host.
        evaluator: of the search.
        notify: says a line to the user.
        probe: whether a program that does nothing may be run: not in the user's own process.

    Raises:
        UserError: the user's evaluation fails by itself.
    """
    if facts.template:
        outcome = _evaluate(evaluator, facts.template)
        if outcome.objective is not None:
            shown = -outcome.objective if facts.maximise else outcome.objective
            notify(f"The problem's own template has the objective {shown:.6g}.")
            return
        if outcome.status is Status.TIMEOUT:
            notify(
                f"WARNING: the evaluation of the problem's own template was ended after its timeout of "
                f"{facts.timeout:g} s. Candidates will hardly be faster: give the problem a larger timeout. Where it "
                "is quick outside of the search, its libraries may not bear being forked: try evaluator='host'."
            )
            return
        notify(f"The problem's own template is not valid ({outcome.status.value}: {outcome.detail}).")
    if not probe:
        return
    outcome = _evaluate(evaluator, probe_program(facts))
    if outcome.status is Status.RAISED and not outcome.calls:
        raise UserError(
            f"The evaluation of {facts.problem} fails before it calls {facts.function}: {outcome.detail}. No candidate "
            f"could be valid. Mend the problem first; its last lines were:\n{outcome.trace}"
        )


def probe_program(facts: HostFacts) -> str:
    """A program of the right form whose function notes that it was called, and does nothing."""
    note = f"import sys; sys.modules[{PROBE!r}] = sys"
    if _is_class(facts):
        return f"class {facts.function}:\n    def __init__(self, *arguments, **named):\n        {note}\n"
    return f"def {facts.function}(*arguments, **named):\n    {note}\n"


def _is_class(facts: HostFacts) -> bool:
    body = ast.parse(facts.template).body
    return any(isinstance(node, ast.ClassDef) and node.name == facts.function for node in body)


def _evaluate(evaluator: Evaluates, code: str) -> Outcome:
    return next(outcome for _, outcome in evaluator.evaluate([code]))
