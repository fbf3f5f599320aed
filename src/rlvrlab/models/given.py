"""A model from a GGUF file that the user has: converted, checked, and written into a folder of the user's choice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.models import cache, smollm2
from rlvrlab.models.card import front_matter
from rlvrlab.models.checks import verify
from rlvrlab.models.conversion import convert
from rlvrlab.plain_files import sha256_of

ENDING = ".gguf"


def get(source: Path, output: Path | None, *, tied: bool, ask: bool, say: smollm2.Say) -> Path:
    """Where the converted model is; nothing is left behind where a check fails."""
    if output is None:
        raise UserError(f"{source.name}: name the folder for the converted model: -o FOLDER")
    if not source.is_file():
        raise UserError(f"{source}: no such file; name a {ENDING} file on this machine")
    return cache.make_new(output, partial(_build, source=source, tied=tied, ask=ask, say=say))


def _build(folder: Path, source: Path, tied: bool, ask: bool, say: smollm2.Say) -> None:
    say("converting to bf16")
    made = convert(source, folder, tied=tied)
    one = "; of output and embedding, where the file has both, the finer one serves as both (--tied)" if tied else ""
    card = (
        f"{front_matter(library_name='transformers', pipeline_tag='text-generation')}\n# {source.stem}\n\n"
        f"Converted by rlvrlab from `{source.name}` (SHA-256 `{sha256_of(source)}`) to bf16: {made.parameters:,} "
        f"parameters in {made.tensors} tensors{one}.\n\nWhat was rounded in that file "
        "stays rounded. Its license is that of the model it was made from.\n"
    )
    (folder / "README.md").write_text(card, encoding="utf-8")
    say("loading it and asking it a question" if ask else "trying its tokenizer")
    try:
        verify(source.stem, folder, made, ask=ask)
    except InfrastructureError as error:
        unasked = "; where the model does not chat, --unasked leaves the question out" if ask else ""
        raise InfrastructureError(f"{error}{unasked}") from None
