r"""Mathematical characters as LaTeX, and what stands in an answer that nobody here reads.

as_latex("x² + ½") -> "x^2  + \\frac{1}{2}"      unread("3⊕") -> Counter("⊕")      unread("\\neg 3") -> Counter("\\neg")

math-verify passes in silence over every sign and command that it does not know, and over all that follows some of them:
it reads `3½`, `3⑤`, `\\neg 3` and `\\phantom{3}` as 3. So its yes counts only where both texts hold the same of these.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from rlvrlab.judge.modes.expressions import number
from rlvrlab.judge.modes.fonts import WRAPPED, in_plain_type

CHARACTERS = str.maketrans({
    "‐": "-", "‑": "-", "‒": "-", "–": "-", "−": "-", "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "∗": "*",
    "÷": "/", "∕": "/", "⁄": "/", "±": "\\pm ", "∓": "\\mp ", "∞": "\\infty ", "≤": "\\le ", "≥": "\\ge ",
    "≠": "\\ne ", "≈": "\\approx ", "≡": "\\equiv ", "→": "\\to ", "°": "^{\\circ}", "∪": "\\cup ", "∩": "\\cap ",
    "∈": "\\in ", "∉": "\\notin ", "∅": "\\emptyset ", "∑": "\\sum ", "∏": "\\prod ", "∫": "\\int ",
    "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ", "…": "\\ldots ", "∠": "\\angle ",
    "△": "\\triangle ", "ℝ": "\\mathbb{R}", "ℚ": "\\mathbb{Q}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}",
    "ℂ": "\\mathbb{C}", "′": "'", "″": "''", "‘": "'", "’": "'", "“": '"', "”": '"', "，": ",", "。": ".", "（": "(",
    "）": ")", "：": ":", "；": ";", "º": "^{\\circ}", "˚": "^{\\circ}",
})  # fmt: skip
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta",
    "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
    "\u00b5": "mu",
}  # fmt: skip
"""Capitals that look like Latin ones have no command of their own; the last is the sign of a millionth."""
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-")
SCRIPT = re.compile(r"((?:[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ])+)|((?:[₊₋]?[₀₁₂₃₄₅₆₇₈₉])+)")
VULGAR = re.compile(r"[¼-¾⅐-⅞↉]")
ROOT = re.compile(r"([√∛])\s{0,9}(?:\{([^{}]*)\}|\(([^()]*)\)|([0-9]+(?:\.[0-9]+)?|[a-zA-Z]|\\[a-zA-Z]+))", re.ASCII)
PYTHON_POWER = re.compile(r"(?<=[\w)}])\s{0,9}\*\*\s{0,9}([0-9]{1,50}|[a-zA-Z]|\([^()]{1,50}\))")
COMMAND = re.compile(r"\\[a-zA-Z]+")
THOUSAND = 3
"""Digits between two thin spaces."""
UNITS = set("€£¥¢‰℃℉")
"""Signs that quantities.py reads, and degrees of temperature, which may be left out like any unit."""
COMMANDS = r"""
    \left \right \big \Big \bigg \Bigg \bigl \bigr \Bigl \Bigr \displaystyle \textstyle \limits \quad \qquad \hspace
    \space \text \textbf \textit \textrm \textnormal \mathrm \mathbf \mathit \mathsf \mathcal \mathbb \mathfrak
    \boldsymbol \bm \mbox \operatorname \boxed \begin \end \hline \frac \dfrac \tfrac \cfrac \over \sqrt \binom \dbinom
    \tbinom \choose \cdot \times \div \pm \mp \ast \star \circ \bullet \oplus \otimes \odot \wedge \vee \land \lor
    \setminus \backslash \sin \cos \tan \cot \sec \csc \arcsin \arccos \arctan \arccot \sinh \cosh \tanh \coth \ln \log
    \lg \exp \min \max \gcd \lcm \det \dim \ker \deg \arg \lim \limsup \liminf \sup \inf \mod \bmod \pmod \pod \Re \Im
    \nabla \partial \sum \prod \int \iint \iiint \oint \alpha \beta \gamma \delta \epsilon \varepsilon \zeta \eta \theta
    \vartheta \iota \kappa \lambda \mu \nu \xi \pi \varpi \rho \varrho \sigma \varsigma \tau \upsilon \phi \varphi \chi
    \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega \hbar \ell \infty \emptyset
    \varnothing \le \leq \leqslant \ge \geq \geqslant \lt \gt \ll \gg \ne \neq \equiv \cong \approx \sim \simeq \propto
    \in \notin \ni \subset \subseteq \supset \supseteq \cup \cap \bigcup \bigcap \mid \nmid \parallel \perp \angle
    \triangle \to \rightarrow \Rightarrow \longrightarrow \implies \iff \leftrightarrow \Leftrightarrow \leftarrow
    \mapsto \therefore \forall \exists \colon \langle \rangle \lfloor \rfloor \lceil \rceil \lbrace \rbrace \lvert
    \rvert \lVert \rVert \vert \Vert \overline \bar \overrightarrow \vec \hat \widehat \underline \prime \degree \dots
    \ldots \cdots \dotsc \dotsb \rm \bf \it \sf \tt \textsf \texttt \textup \mathtt \mathscr \middle \nonumber
    \notag \hfill
"""
READ = frozenset(COMMANDS.split())
"""Commands that are read here or by math-verify, or only say how a formula looks."""

BESIDE_A_NUMBER = r"""
    \left \right \big \Big \bigg \Bigg \bigl \bigr \Bigl \Bigr \displaystyle \textstyle \quad \qquad \space \boxed
    \mathit \mathsf \boldsymbol \bm \lfloor \rfloor \lceil \rceil \lvert \rvert \vert \lbrace \rbrace \therefore
    \overline \bar \degree \circ \prime \pi \alpha \beta \gamma \delta \epsilon \theta \lambda \mu \rho \sigma \tau \phi
    \omega \infty \hbar \rm \bf \it \sf \tt \textup
"""
BEFORE_A_NUMBER = r"""
    \sqrt \sin \cos \tan \cot \sec \csc \arcsin \arccos \arctan \sinh \cosh \tanh \ln \log \lg \exp \max \min \gcd
    \to \rightarrow \Rightarrow \implies \pm
"""
BESIDE, BEFORE = frozenset(BESIDE_A_NUMBER.split()), frozenset(BEFORE_A_NUMBER.split())
"""Layout, brackets, units and factors may stand on either side of a number, functions before it."""
DIGIT = re.compile(r"[0-9.]", re.ASCII)
BEFORE_A_SET = re.compile(r"(\\[a-zA-Z]+|[^\s\\])\s{0,9}\\mathbb(?![a-zA-Z])")
VALUES = frozenset(
    (*"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ)]}+*/-", "\\cdot", "\\times", "\\pi")
)
"""Behind one of these a set is a factor or a summand: math-verify reads `7\\mathbb{Z}` as 7."""
LEFT_OUT = re.compile(r"[,+*]\s{0,9}(?:\\[lc]?dots[cb]?(?![a-zA-Z])|\.\.\.)")
"""Members of a list or a sum that are left out, which math-verify does not miss."""
_BLANKS = r"(?:\\[,! ]){1,9}"
SPACED = re.compile(rf"(?<![0-9.])[0-9]+(?:\.[0-9]+)?{_BLANKS}[0-9](?:[0-9.]|{_BLANKS}(?=[0-9]))*", re.ASCII)
BLANKS = re.compile(_BLANKS)
AFTER_A_COMMA = re.compile(r"(?<=[0-9],)(?:\\[, ]){1,9}(?=[0-9])", re.ASCII)
"""Between two numbers of a list: `1,\\ 234` is no way to write 1234."""
FORMULA = re.compile(r"\s*\\(?:\[((?:[^\\]|\\[^()\[\]])*)\\\]|\(((?:[^\\]|\\[^()\[\]])*)\\\))\.?\s*")
"""One formula and nothing else, as `\\[5\\]` or `\\(5\\)`; a backslash behind another begins no border: `\\\\[2pt]`."""


def as_latex(text: str) -> str:
    r"""The text with powers, roots, fractions, letters and signs that Unicode has as LaTeX writes them.

    A formula that is the whole text loses its borders: `\[5\]` is 5; one in a type of its own loses that: `\mathrm{i}`.
    """
    text = grouped(PYTHON_POWER.sub(r"^{\1}", without_borders(text)))
    if text.isascii():
        return in_plain_type(text)
    text = unicodedata.normalize("NFC", text)
    text = VULGAR.sub(_fraction, SCRIPT.sub(_script, text))
    text = "".join(f"\\{GREEK[character]} " if character in GREEK else character for character in text)
    return in_plain_type(ROOT.sub(_root, text).translate(CHARACTERS))


def grouped(text: str) -> str:
    r"""The text without the thin spaces between thousands, and with blanks for those that make several numbers."""
    return AFTER_A_COMMA.sub(" ", SPACED.sub(_grouped, text)) if "\\" in text else text


def _grouped(found: re.Match[str]) -> str:
    r"""Digits with thin spaces between thousands are one number, `1\,234.567\,8`; with others they are several."""
    whole, _, part = found.group().partition(".")
    first, *groups = BLANKS.split(whole)
    *behind, last = BLANKS.split(part)
    fits = not groups or len(first) <= THOUSAND
    parted = not behind or len(last) <= THOUSAND
    if fits and parted and all(len(group) == THOUSAND for group in groups + behind):
        return BLANKS.sub("", found.group())
    return BLANKS.sub(" ", found.group())


def without_borders(text: str) -> str:
    r"""What stands between `\[` and `\]`, or `\(` and `\)`, where that is the whole text; any other text as it is."""
    found = FORMULA.fullmatch(text)
    return (found[1] or found[2] or "") if found else text


def unread(text: str) -> Counter[str]:
    """Signs, digits of other scripts, invisible characters and commands that nobody reads, each as often as it stands.

    Letters of other scripts are words; a question mark says that the answer is none, and `5!!` is not
    the factorial of a factorial, as math-verify has it. Signs among words count, sets as factors, dots in a list.
    """
    found = Counter(command for command in COMMAND.findall(text) if command not in READ)
    found.update({sign: text.count(sign) for sign in ("?", "!!")})
    found.update(sign for words in WRAPPED.findall(text) for sign in words if sign in "!+*")
    found["\\mathbb"] = sum(before in VALUES for before in BEFORE_A_SET.findall(text))
    found["\\ldots"] = LEFT_OUT.search(text) is not None
    if not text.isascii():
        found.update(character for character in text if not character.isascii() and not _is_read(character))
    return +found


def lacks_something(text: str) -> bool:
    """Is it one plain number beside a command that needs more? math-verify reads `3 \\sqrt` and `\\int 3` as 3."""
    place = DIGIT.search(text)
    if place is None or number(COMMAND.sub(" ", text).replace("{", " ").replace("}", " ")) is None:
        return False
    before, after = (set(COMMAND.findall(part)) for part in (text[: place.start()], text[place.start() :]))
    return not (before <= BESIDE | BEFORE and after <= BESIDE)


def _is_read(character: str) -> bool:
    if character in UNITS or character.isspace():
        return True
    return character.isalpha() and unicodedata.numeric(character, None) is None


def _script(found: re.Match[str]) -> str:
    """Only what is longer than one digit needs braces, which would hide the unit in `\\text{cm²}`."""
    raised, lowered = found.groups()
    script = raised.translate(RAISED) if raised else lowered.translate(LOWERED)
    return f"{'^' if raised else '_'}{script if len(script) == 1 else f'{{{script}}}'} "


def _fraction(found: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", found.group()).partition("⁄")
    return f"\\frac{{{above}}}{{{below}}}"


def _root(found: re.Match[str]) -> str:
    sign, *arguments = found.groups()
    degree = "[3]" if sign == "∛" else ""
    return f"\\sqrt{degree}{{{next(one for one in arguments if one is not None)}}}"
