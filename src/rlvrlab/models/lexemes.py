"""The words of nano's tokenizer: what minicode's prompts and programs are made of, each worth one token.

Counted over 4,320 problems of all four skills and nine levels; levels 1 to 3 are covered whole, of the others what
saves most. A problem with its solution takes 29, 36 and 43 tokens at levels 1 to 3 and 54 to 106 at levels 4 to 9,
a third of its characters. No lexeme begins or ends with a digit, so numbers are read digit by digit.

The order is the order of token ids: adding one changes nano's weights, so append only.
"""

from __future__ import annotations

FRAME = (
    "#gen ", "#fix ", "#min\n", "#out\n", "def f(x):\n", "def f(x,y):\n", " x=", " return ", " return x\n",
    " return sum(x)\n", " return len(x)\n", " return max(x+[0])\n", " not ", "]>[",
)  # fmt: skip

LISTS = (
    "sorted(x)\n", "sorted(set(x))\n", "[v for v in x if v", "[v", " for v in x]\n", "%2==", "x[", "::-1]\n", "::2]\n",
    ":]\n", "]\n", ":]+x[:", "x+[", "]+x\n",
)  # fmt: skip

WORDS = (
    "sort", "ascending", "order", "reverse", "flip", "backwards", "unique", "distinct", "dedupe", "rotate", "cycle",
    "first to end", "every other", "alternate", "step ", "evens", "keep ", "even", "no ", "odds", "odd", "drop ",
    "skip ", "without ", "first ", "take ", "head ", "last ", "tail ", "final ", "add ", "plus ", "increase ",
    "times ", "multiply ", "scale ", "above ", "more than ", "below ", "less than ", "push ", "append ", "end with ",
    "lead ", "prepend ", "start with ", "sum", "total", "add up", "count", "size", "how many", "max", "largest",
    "biggest",
)  # fmt: skip

CONTROL = (
    " if ", "else:x=", ":x=", " else ", "if there is ", "if adds up over ", " for ", "in ", " for v in x", " in x",
    " r=[]\n", " x=r\n", "r+=[", "t=", "x[i]", "x[i-1]]\n", "len(x)>", "sum(x)>", "sum(x)%2==0:", "break\n",
    "while sum(x)>", ")\n",
)  # fmt: skip

TEXTS = (
    "''.join(", "x.replace('", "','", "')\n", "'aeiou'", "chr(ord(v)", "x.upper()\n", "'+x\n", "':", "{a:b",
    " for a,b in x.items()", " if b", " if a", "}\n", "x.count(", "x.index(", "enumerate(", "x.values()", "{**x,'",
    "zip(x,y)]\n", "y]",
)  # fmt: skip

LEXEMES = (*FRAME, *LISTS, *WORDS, *CONTROL, *TEXTS)
"""126, which makes 384 tokens with the two special ones and the 256 bytes."""
