"""`eoh-esopt export-population`: the populations of a run in EoH's form."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("export-population")
@click.argument("run_folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="New folder for the populations.")
def export_population(run_folder: Path, out: Path) -> None:
    """Write the populations of RUN as EoH writes its own: OUT/results/pops/population_generation_N.json.

    EoH goes on from such a file by use_continue, or takes its programs as seeds by use_seed; a run of ours takes them
    by --init-from. Objectives are lower for better heuristics, as EoH has them.

    \b
    Examples:
      eoh-esopt export-population runs/a -o for-eoh
      eoh-esopt run tsp_construct --init-from for-eoh --model ./my-model --out runs/b
    """
    from eoh_esopt.engine.export import check_free
    from eoh_esopt.hosts.export_population import export_populations

    check_free(out, "--out")
    written = export_populations(run_folder, out)
    newest = written[-1]
    click.echo(f"Wrote {len(written)} populations, the last to {newest}")
    click.echo(f"EoH 0.2: EoH(..., use_continue=True, continue_path={str(newest)!r}, continue_id={len(written) - 1})")
    click.echo(f"     or: EoH(..., use_seed=True, seed_path={str(newest)!r})")
