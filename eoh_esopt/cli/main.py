"""The command line: a thin table over the packages. Bad input ends in one sentence and exit code 2."""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import EntryPoint, entry_points

import click

from eoh_esopt.cli.compare import compare
from eoh_esopt.cli.diagnose import diagnose
from eoh_esopt.cli.doctor import doctor
from eoh_esopt.cli.evaluate import evaluate
from eoh_esopt.cli.export import export
from eoh_esopt.cli.export_population import export_population
from eoh_esopt.cli.host import host
from eoh_esopt.cli.model import model
from eoh_esopt.cli.plan import plan
from eoh_esopt.cli.preset import preset
from eoh_esopt.cli.probe import probe
from eoh_esopt.cli.problem import problem
from eoh_esopt.cli.replay import replay
from eoh_esopt.cli.report import report
from eoh_esopt.cli.run import run
from eoh_esopt.cli.serve import serve
from eoh_esopt.cli.sweep import sweep
from operators.errors import UserError

_BY_OTHERS = {
    "train": "train_adapters.cli:train",
    "evaluate-agent": "train_adapters.cli:evaluate_agent",
    "skill": "train_adapters.skills.command:skill",
    "compare-training": "train_adapters.grpo.cli:compare_training",
    "training-curve": "train_adapters.curve:training_curve",
}
"""Commands of packages that build on this one, which are imported when they are asked for and not before. Others are
found by their entry points; ours are named here too, for checkouts that were installed before they had any."""

_GROUP = "eoh_esopt.commands"


class _Commands(click.Group):
    """The commands that are added to it, and those that other packages bring along."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_by_others()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in (others := _by_others()):
            return found
        command = others[cmd_name].load()
        assert isinstance(command, click.Command)
        return command


def _by_others() -> dict[str, EntryPoint]:
    ours = {name: EntryPoint(name, value, _GROUP) for name, value in _BY_OTHERS.items()}
    return ours | {one.name: one for one in entry_points(group=_GROUP)}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="eoh-esopt")
def cli() -> None:
    """Heuristic search in which the language model learns while it searches.

    \b
    Examples:
      eoh-esopt doctor
      eoh-esopt model get SmolLM2-135M-Instruct
      eoh-esopt plan --model Llama-3.1-8B-Instruct --gpu H100
      eoh-esopt probe tsp_construct --model SmolLM2-135M-Instruct --scope norms --budget 400
      eoh-esopt run tsp_construct --model SmolLM2-135M-Instruct --scope norms --budget 400 --out runs/a
      eoh-esopt run --resume runs/a
      eoh-esopt sweep smoke --out runs/smoke
      eoh-esopt preset list
      eoh-esopt report runs/a -o report.html
      eoh-esopt compare runs/smoke
      eoh-esopt diagnose runs/a
      eoh-esopt export --history runs/a -o adapted
      eoh-esopt evaluate runs/a/best_heuristic.py --problem tsp_construct --split test --size 50,100
      eoh-esopt problem check my_problem.py
      eoh-esopt serve --model SmolLM2-135M-Instruct
      eoh-esopt host check
      eoh-esopt train sudoku --masks 15 --model Qwen3.5-4B --out runs/sudoku
      eoh-esopt evaluate-agent sudoku --masks 15 --history runs/sudoku
      eoh-esopt skill distil runs/sudoku -o skills/sudoku
    """


for command in (
    run,
    sweep,
    preset,
    replay,
    report,
    compare,
    diagnose,
    export,
    evaluate,
    problem,
    model,
    plan,
    probe,
    serve,
    host,
    export_population,
    doctor,
):
    cli.add_command(command)


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 a check failed or a defect of ours, 2 bad input, 130 interrupted."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        sys.exit(cli.main(standalone_mode=False))
    except UserError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        _show(error)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. What the log holds is kept: go on with --resume.", err=True)
        sys.exit(130)


def _show(error: click.ClickException) -> None:
    """One line, as for our own errors; a group without a command shows its help."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # not in click 8.1
        error.show()
        return
    context = getattr(error, "ctx", None)
    hint = f" See: {context.command_path} --help" if context else ""
    click.echo(f"Error: {error.format_message()}{hint}", err=True)
