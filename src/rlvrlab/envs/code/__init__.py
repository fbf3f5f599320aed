"""Code environments over data sets: code (write), code_repair, code_refactor (rewrite), code_reasoning (predict).

All of them, and minicode, ask the one judge of shared_judge.py; judged.py says how answers become verdicts.
"""

from rlvrlab.envs.code.generation import Code
from rlvrlab.envs.code.reasoning import CodeReasoning
from rlvrlab.envs.code.refactor import CodeRefactor
from rlvrlab.envs.code.repair import CodeRepair

__all__ = ["Code", "CodeReasoning", "CodeRefactor", "CodeRepair"]
