"""verl's own RLHFDataset reads what we write, Parquet and JSONL alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.data.rows import write_problems
from rlvrlab.envs.countdown import Countdown

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_rlhf_dataset_reads_our_rows(tmp_path: Path, name: str) -> None:
    pytest.importorskip("PIL", reason="verl's data set imports Pillow")
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    omegaconf = pytest.importorskip("omegaconf")
    data = pytest.importorskip("verl.utils.dataset.rl_dataset")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    tokenizer.chat_template = TEMPLATE
    problems = Countdown(numbers=(3,)).problems("train", 5, seed=0)
    write_problems(tmp_path / name, problems)
    settings = {"max_prompt_length": 4096, "cache_dir": str(tmp_path / "cache"), "filter_overlong_prompts_workers": 1}
    rows = data.RLHFDataset(str(tmp_path / name), tokenizer, omegaconf.OmegaConf.create(settings))
    assert len(rows) == 5
    for index, problem in enumerate(problems):
        row = rows[index]
        assert row["raw_prompt"] == [{"role": "user", "content": problem.prompt}]
        assert (row["index"], row["data_source"]) == (index, "countdown")
        assert row["reward_model"]["style"] == "rule" and row["extra_info"]["id"] == problem.id
    assert data.collate_fn([rows[0], rows[1]])["data_source"].shape == (2,)
