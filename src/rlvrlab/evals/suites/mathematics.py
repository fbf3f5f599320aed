"""Mathematics: small hard sets by pass@k, large ones by pass@1. All read the publisher's files; none is shipped."""

from __future__ import annotations

from rlvrlab.evals.suites.base import Suite, published, test_file

LONG = 8192
QWEN = "github.com/QwenLM/Qwen2.5-Math, evaluation/data/{}"
LIVE = "huggingface.co/datasets/opencompass/LiveMathBench"
AT_K = {
    # name: (problems, k); both tiers draw k answers, the fast one to fewer problems
    "aime24": (30, 64), "aime25": (30, 64), "math500": (500, 8), "lmb": (238, 8), "minerva_math": (272, 8),
    "gaokao2023en": (385, 8), "gaokao2024_mix": (91, 8),
}  # fmt: skip
AT_1 = {
    "college_math": 2818, "cmath": 600, "gsm8k": 1319, "svamp": 1000, "asdiv": 2215, "mawps": 2065, "sat_math": 32,
    "aqua": 254, "tabmwp": 1000, "amc23": 40, "mmlu_stem": 3018,
}  # fmt: skip
SVAMP = ("svamp/SVAMP.json", "svamp/SVAMP.json.gz")
FAST_AT_K, FAST_AT_1 = 30, 60

MATHEMATICS = Suite(
    "math",
    "mathematics",
    (
        *(
            published(
                name, size, min(size, FAST_AT_K), LIVE if name == "lmb" else QWEN.format(name), n=k, max_tokens=LONG,
                group="pass@k",
            )
            for name, (size, k) in AT_K.items()
        ),
        *(
            published(
                name, size, min(size, FAST_AT_1), QWEN.format(name), max_tokens=LONG, group="pass@1",
                files=test_file(name, *(SVAMP if name == "svamp" else ())),
            )
            for name, size in AT_1.items()
        ),
    ),
)  # fmt: skip
