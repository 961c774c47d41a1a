"""What a search will do, in plain words, said before it starts."""

from __future__ import annotations

from collections.abc import Iterator

from eoh_esopt.hosts.host import HostFacts
from eoh_esopt.hosts.settings import Settings
from operators.search import LEARNING


def explain(facts: HostFacts, settings: Settings) -> Iterator[str]:
    """The schedule, what the model can learn from it, the budget, and what is not promised."""
    plan = settings.plan(facts)
    if plan is None:
        yield from _host_schedule(facts, settings)
    else:
        yield from _paper_schedule(facts, settings, plan)
    if not settings.run.learns:
        yield "The weights stay as they are: the plug-in writes the candidates and keeps the books, no more."
    if settings.budget is not None:
        unit = settings.budget_unit.replace("_", " ")
        yield f"Budget: the search ends after {settings.budget} {unit}, those of the start population included."
    if settings.evaluator == "host":
        yield (
            f"Evaluations run as {facts.name} runs them, one after the other: not promised are time limits that hold, "
            "the end of what a program started, and that a run can be repeated."
        )


def _host_schedule(facts: HostFacts, settings: Settings) -> Iterator[str]:
    drawn = ", ".join(f"{name} x {count:.3g}" for name, count in facts.drawn.items())
    yield f"Schedule 'host': {facts.name} draws its own operators, to be expected in a generation: {drawn}."
    if not settings.run.learns:
        return
    size = settings.run.learning_batch
    needed = {name: size / facts.drawn[name] for name in LEARNING if facts.drawn.get(name)}
    rhythm = ", ".join(f"from {name} {_rhythm(count)}" for name, count in needed.items())
    yield (
        f"An update takes {size} candidates of one operator ({settings.run.directions} directions), collected over as "
        f"many generations as that takes. The model learns {rhythm}."
    )
    generations = settings.generations(facts)
    if all(count > generations for count in needed.values()):
        yield (
            f"WARNING: {generations} generations are too few for that: the model will hardly learn. Use "
            f"schedule='paper', fewer directions (now {settings.run.directions}), a larger population or more "
            "generations."
        )


def _paper_schedule(facts: HostFacts, settings: Settings, plan: dict[str, int]) -> Iterator[str]:
    batches = ", ".join(f"{name} x {count}" for name, count in plan.items())
    generations = settings.generations(facts)
    total = sum(plan.values()) * generations
    if facts.limit is not None:
        total = min(total, facts.limit)
    yield (
        f"Schedule 'paper': {generations} generations of {batches}, the population renewed after each operator; "
        f"{total} candidates and the start population."
    )
    if settings.run.learns:
        learning = sum(name in LEARNING for name in plan)
        yield f"The model learns after each batch of m1 or m2, so up to {learning * generations} times."


def _rhythm(generations: float) -> str:
    return "in each generation" if generations <= 1 else f"about once in {generations:.2g} generations"
