"""How a sweep runs its cells: which, where, in what order, and what becomes of the others when one fails.

The cells only play a run here; `test_sweep_real` has real ones.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console
from sweep_cases import bytes_of, playing, states, wait_for

from eoh_esopt.experiments import cell_process
from eoh_esopt.experiments.replicas import Replica, places, threads_each
from eoh_esopt.experiments.settings_files import Place
from eoh_esopt.experiments.sweep import Cell, load_sweep
from eoh_esopt.experiments.sweep_run import SweepListener, SweepRun, claimed, run_cells
from eoh_esopt.reports.sweep import SweepLines, SweepLive
from operators.errors import UserError

TEXT = """
tasks = ["tsp_construct"]
methods = ["eoh", "esopt-eoh"]
seeds = [1, 2]

[settings]
model = "m"
budget = 50
"""
ALL = [f"tsp_construct/{arm}/seed-{seed}" for seed in (1, 2) for arm in ("eoh", "esopt-eoh")]
ONE = (Replica("cpu 1"),)
Behaviours = Callable[[Cell], str]


def cells_of(folder: Path, text: str = TEXT) -> list[Cell]:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_sweep(str(path)).cells()


class Heard(SweepListener):
    """What a listener hears."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.finished: list[str] = []
        self.failed: dict[str, str] = {}
        self.most_at_once = 0

    def on_begin(self, sweep: SweepRun, cell: Cell, replica: Replica) -> None:
        self.begun.append(cell.name)

    def on_progress(self, sweep: SweepRun) -> None:
        self.most_at_once = max(self.most_at_once, len(sweep.running))

    def on_finish(self, sweep: SweepRun, cell: Cell) -> None:
        self.finished.append(cell.name)

    def on_failure(self, sweep: SweepRun, cell: Cell, why: str) -> None:
        self.failed[cell.name] = why


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Heard]:
    """Run a sweep of cells that behave as they are told."""

    def run(
        behaviours: Behaviours = lambda cell: "", replicas: Sequence[Replica] = ONE, text: str = TEXT, threads: int = 1
    ) -> Heard:
        monkeypatch.setattr(cell_process, "command_of", playing(behaviours))
        heard = Heard()
        run_cells(SweepRun.of(cells_of(tmp_path, text), tmp_path / "out"), replicas, threads, heard)
        return heard

    (tmp_path / "out").mkdir()
    return run


def only(name: str, behaviour: str) -> Behaviours:
    return lambda cell: behaviour if cell.name == name else ""


def test_all_cells_are_run_in_order_once(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else cells are missing from a comparison, or a finished one is paid for again."""
    heard = play()
    assert heard.begun == heard.finished == ALL
    assert states(tmp_path / "out") == dict.fromkeys(ALL, "finished")
    before = bytes_of(tmp_path / "out", ALL)
    assert play().begun == []
    assert bytes_of(tmp_path / "out", ALL) == before


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("fails", "exit code 1: the weights are gone."),
        ("dies", "exit code -9: "),
        ("stops early", "exit code 0: "),
        ("damages", "is damaged"),
    ],
)
def test_a_failing_cell_says_why_and_the_rest_goes_on(
    play: Callable[..., Heard], tmp_path: Path, behaviour: str, why: str
) -> None:
    """Else one cell out of hundred ends a night's work, or is missed without a word."""
    heard = play(only(ALL[1], behaviour))
    assert heard.finished == [ALL[0], *ALL[2:]]
    assert list(heard.failed) == [ALL[1]]
    assert why in heard.failed[ALL[1]]
    assert states(tmp_path / "out")[ALL[1]] == "failed"
    index = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert why in index["cells"][1]["why"]
    if behaviour == "fails":
        assert "some output" in (tmp_path / "out" / ALL[1] / "cell.log").read_text()


def test_a_replica_where_everything_fails_gets_no_more_cells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else one dead server fails, within minutes, all the cells that the others would have done by the morning."""
    good = playing(lambda cell: "slow")
    bad = playing(lambda cell: "fails")
    monkeypatch.setattr(
        cell_process,
        "command_of",
        lambda cell, folder, replica, n: (bad if replica.name == "b" else good)(cell, folder, replica, n),
    )
    run = SweepRun.of(cells_of(tmp_path, TEXT.replace("[1, 2]", "[1, 2, 3, 4, 5, 6]")), tmp_path / "out")
    (tmp_path / "out").mkdir()
    run_cells(run, [Replica("a"), Replica("b")], 1, SweepListener())
    assert (run.count("failed"), run.count("finished")) == (3, 9)
    (tmp_path / "alone").mkdir()
    alone = SweepRun.of(cells_of(tmp_path), tmp_path / "alone")
    run_cells(alone, [Replica("b")], 1, SweepListener())
    assert alone.count("failed") == 4, "the last replica is kept, so that every cell says why"


def test_a_failed_cell_is_tried_again(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else a cell that failed for want of a server never gets its run."""
    play(only(ALL[1], "fails"))
    assert play().begun == [ALL[1]]
    assert states(tmp_path / "out") == dict.fromkeys(ALL, "finished")


def test_a_cell_whose_log_is_damaged_is_told_and_left_alone(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else a sweep cannot be taken up again because of one file, or writes over what may be mended."""
    play()
    path = tmp_path / "out" / ALL[2] / "events.jsonl"
    path.write_text(path.read_text().replace('{"event": "batch", ', '{"event": "batch", ?'))
    before = bytes_of(tmp_path / "out", ALL)
    assert play().begun == []
    assert bytes_of(tmp_path / "out", ALL) == before
    assert states(tmp_path / "out") == {**dict.fromkeys(ALL, "finished"), ALL[2]: "failed"}


def test_a_cell_that_was_killed_before_its_first_event_begins_anew(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else such a cell can neither be begun (its folder holds a run) nor resumed (the run holds nothing)."""
    folder = tmp_path / "out" / ALL[0]
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"event": "sta')
    assert play().finished == ALL


def test_cells_run_at_once_on_their_replicas(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else GPUs stand idle, or two cells move the weights of one server."""
    replicas = [Replica(f"cuda:{number}", environment={"CUDA_VISIBLE_DEVICES": str(number)}) for number in (4, 6)]
    heard = play(lambda cell: "slow", replicas, threads=3)
    assert heard.most_at_once == 2
    played = [json.loads((tmp_path / "out" / name / "played.json").read_text()) for name in ALL]
    assert {one["seen"]["CUDA_VISIBLE_DEVICES"] for one in played} == {"4", "6"}
    assert {one["seen"]["OMP_NUM_THREADS"] for one in played} == {"3"}
    for device in ("4", "6"):
        here = sorted((one["at"], one["ended"]) for one in played if one["seen"]["CUDA_VISIBLE_DEVICES"] == device)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(here))


def test_an_interrupt_stops_the_cells(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else Ctrl-C leaves processes behind that hold the GPU."""
    folder = tmp_path / "out" / ALL[0]

    def press() -> None:
        wait_for(lambda: (folder / "events.jsonl").exists())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        play(lambda cell: "hangs")
    assert states(tmp_path / "out") == {**dict.fromkeys(ALL, "waiting"), ALL[0]: "begun"}
    said = (folder / "cell.log").read_text()
    assert "KeyboardInterrupt" in said


def test_a_changed_sweep_is_refused_by_name(play: Callable[..., Heard], tmp_path: Path) -> None:
    """Else a table holds runs of different settings under one name."""
    play()
    before = bytes_of(tmp_path / "out", ALL)
    with pytest.raises(UserError, match=r"out/tsp_construct/eoh/seed-1 began with budget 50, and the sweep has 60 now"):
        play(text=TEXT.replace("budget = 50", "budget = 60"))
    with pytest.raises(UserError, match=r"seed-1 began with sigma 0.001, and the sweep has 0.002 now"):
        play(text=TEXT + "sigma = 2e-3")
    assert bytes_of(tmp_path / "out", ALL) == before


def test_what_is_a_default_may_be_written_out(play: Callable[..., Heard]) -> None:
    """Else a comment that became a setting makes finished cells worthless; more seeds can be added at any time."""
    play()
    assert play(text=TEXT + "sigma = 1e-3\nscope = 'full'").begun == []
    more = play(text=TEXT.replace("[1, 2]", "[1, 2, 3]"))
    assert more.begun == ["tsp_construct/eoh/seed-3", "tsp_construct/esopt-eoh/seed-3"]


def test_two_sweeps_do_not_work_in_one_folder(tmp_path: Path) -> None:
    """Else each starts the cells of the other."""
    with claimed(tmp_path / "out"), pytest.raises(UserError, match="Another sweep works in"), claimed(tmp_path / "out"):
        pass
    with claimed(tmp_path / "out"):
        pass


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """Else the user sees a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"Cannot use .*file/out for a sweep"), claimed(tmp_path / "file" / "out"):
        pass


def lines_of(folder: Path, behaviours: Behaviours, monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    monkeypatch.setattr(cell_process, "command_of", playing(behaviours))
    run = SweepRun.of(cells_of(folder), folder / "out")
    listener = SweepLive(console, 1) if console.is_terminal else SweepLines(console, 1)
    run_cells(run, ONE, 1, listener)
    if isinstance(listener, SweepLive):
        listener.stop()


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_says_what_is_done_and_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """Else nobody knows whether a night is enough, or which cell has failed."""
    (tmp_path / "out").mkdir()
    with (tmp_path / "said").open("w") as file:
        console = Console(file=file, width=100, force_terminal=terminal)
        lines_of(tmp_path, only(ALL[1], "fails"), monkeypatch, console)
    said = (tmp_path / "said").read_text()
    assert "4 cells, 0 finished already, 1 at once" in said
    assert "finished  tsp_construct/eoh/seed-1 in 1 s, best 6.5000; 1 of 4 cells finished, about 3 s left" in said
    assert "failed    tsp_construct/esopt-eoh/seed-1: exit code 1: the weights are gone." in said
    assert "3 of 4 cells finished, 1 failed" in said


def test_the_time_left_follows_the_pace_of_each_arm(tmp_path: Path) -> None:
    """Else arms that learn, which are slower, are promised at the pace of those that do not."""
    run = SweepRun.of(cells_of(tmp_path), tmp_path / "out")
    assert run.seconds_left(1) is None
    for name, candidates, seconds in ((ALL[0], 50, 10.0), (ALL[1], 25, 20.0)):
        run.logs[name].candidates, run.logs[name].seconds = candidates, seconds
    run.logs[ALL[0]].ended = True
    assert run.seconds_left(1) == pytest.approx(25 * 0.8 + 50 * 0.2 + 50 * 0.8)
    assert run.seconds_left(2) == pytest.approx(40.0), "one cell cannot be shared out"
    assert run.seconds_left(9) == pytest.approx(40.0)


def place() -> Place:
    return Place(Path("mine.toml"))


def test_a_cpu_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of several cells takes all cores, and all of them crawl."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("eoh_esopt.experiments.replicas._gpus", lambda: 0)
    monkeypatch.setattr("eoh_esopt.experiments.replicas.available_cores", lambda: 16)
    assert len(places((), None, place())) == 4
    assert [threads_each(count) for count in (1, 3, 16, 40)] == [16, 5, 1, 1]
    assert len(places((), 3, place())) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_each(1) == 2


def test_every_gpu_gets_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a machine with eight GPUs works with one, or two cells get in each other's way."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("eoh_esopt.experiments.replicas._gpus", lambda: 2)
    found = places((), None, place())
    assert [dict(one.environment) for one in found] == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}]
    assert len(places((), 1, place())) == 1
    with pytest.raises(UserError, match="3 cells cannot run at once on 2 replicas"):
        places((), 3, place())


def test_devices_are_counted_among_the_visible_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a sweep takes a GPU that belongs to somebody else."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-aa")
    (tmp_path / "mine.toml").write_text(
        "replicas = [{device = 'cuda:1'}, {device = 'cuda:0,1'}, {device = 'cpu'}]\n" + TEXT
    )
    one, two, cpu = load_sweep(str(tmp_path / "mine.toml")).replicas
    assert two.environment == {"CUDA_VISIBLE_DEVICES": "3,GPU-aa"}
    assert (one.environment, cpu.environment) == ({"CUDA_VISIBLE_DEVICES": "GPU-aa"}, {"CUDA_VISIBLE_DEVICES": ""})
    (tmp_path / "mine.toml").write_text("replicas = [{device = 'cuda:2'}]\n" + TEXT)
    with pytest.raises(UserError, match="there is no cuda:2"):
        load_sweep(str(tmp_path / "mine.toml"))


def test_a_cell_goes_on_at_another_server(tmp_path: Path) -> None:
    """Else a cell that began at one server cannot go on when another one is free."""
    servers = "replicas = [{servers = 'localhost:8000'}, {servers = 'localhost:8001'}]\n"
    cell = cells_of(tmp_path, servers + TEXT)[1]
    assert (cell.config.backend, cell.config.servers) == ("served", "localhost:8000")
    other = load_sweep(str(tmp_path / "mine.toml")).replicas[1]
    new = cell_process.command_of(cell, tmp_path / "a", other, 2)
    assert new[1:5] == ["-m", "eoh_esopt", "run", "tsp_construct"]
    assert "--servers=localhost:8001" in new
    assert "--backend=served" in new
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "events.jsonl").write_text("")
    resumed = cell_process.command_of(cell, tmp_path / "a", other, 2)
    assert resumed[4:] == ["--resume", str(tmp_path / "a"), "--servers=localhost:8001", "--workers", "2"]
    assert resumed[0] == sys.executable
