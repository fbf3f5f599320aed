"""A tokenizer as it lies in its folder, read without Transformers: tokenizer.json, its special tokens, the template.

`token_file` gives it with the few verbs of a Transformers tokenizer that tokenizer.py asks for; None where the folder
asks for more than reading tokenizer.json as it is, so that Transformers reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tokenizers import Tokenizer

from rlvrlab import plain_files
from rlvrlab.engines.hf.folder_files import read_json
from rlvrlab.engines.hf.standard_tokens import is_usual, named_tokens

FILES = (
    "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "tokenizer.model",
)  # fmt: skip
"""All that a tokenizer may be made of."""


def token_file(folder: Path) -> TokenFile | None:
    """The tokenizer in `folder`."""
    try:
        return _read(folder)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # plain ones and panics of the library too; Transformers then tells of the file
        return None


def _read(folder: Path) -> TokenFile | None:
    facts = read_json(folder / "tokenizer_config.json")
    files = {name: plain_files.read_bytes(folder / name) for name in FILES if (folder / name).is_file()}
    inner = Tokenizer.from_str(files["tokenizer.json"].decode("utf-8"))
    template = _template(folder, facts)
    if not is_usual(folder, facts, files["tokenizer.json"], inner):
        return None
    return TokenFile(inner, named_tokens(folder, facts), template, files)


def _template(folder: Path, facts: dict[str, Any]) -> str | None:
    """The chat template; TypeError where there are several, or one that marks what the model said."""
    path = folder / "chat_template.jinja"
    template = plain_files.read_text(path) if path.is_file() else facts.get("chat_template")
    if template is not None and not isinstance(template, str):
        raise TypeError("several templates")
    if "{% generation" in (template or ""):
        raise TypeError("a template with marks")
    return template


class TokenFile:
    """What a Transformers tokenizer does for who draws answers and trains on them."""

    def __init__(
        self, inner: Tokenizer, named: dict[str, str], template: str | None, files: Mapping[str, bytes]
    ) -> None:
        inner.no_truncation()
        inner.no_padding()
        self.backend_tokenizer, self.special_tokens_map, self.chat_template, self._files = inner, named, template, files
        self.eos_token = named.get("eos_token")
        self.eos_token_id, self.bos_token_id = (self._id(named.get(key)) for key in ("eos_token", "bos_token"))

    def _id(self, token: str | None) -> int | None:
        return None if token is None else self.backend_tokenizer.token_to_id(token)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def __call__(self, text: str, add_special_tokens: bool = True) -> Any:
        """Tokens as `.input_ids`."""
        return SimpleNamespace(input_ids=self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str:
        """Text; spaces are never cleaned up here."""
        assert not clean_up_tokenization_spaces
        return str(self.backend_tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens))

    def get_vocab(self) -> dict[str, int]:
        """Tokens by their names."""
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """Tokens beside the vocabulary, by number."""
        return dict(self.backend_tokenizer.get_added_tokens_decoder())

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]:
        """Their names."""
        return [self.backend_tokenizer.id_to_token(one) for one in ids]

    def save_pretrained(self, folder: Path) -> None:
        """The files as they were when they were read."""
        for name, content in self._files.items():
            (folder / name).write_bytes(content)
