"""The library's sentences in the words of the caller.

The library names tensors and attributes as the specification does, and says which are attributes
and which are inputs. A Python caller has typed ``out=`` for the output, or ``stride=`` and
``weight=``, and knows arguments alone.
"""

from __future__ import annotations

import re
from typing import Mapping

_KINDS = {
    "s64": "an integer",
    "s64[]": "a sequence of integers",
    "string": "a string",
    "bool": "True or False",
}
_RULES = (
    (r" at entry (\d+)", r" at index \1"),
    (r"(?:attribute|input \d+|output \d+) '(\w+)'", r"\1"),
    (r"^option (?=\w+ is)", ""),
    (r"is a null pointer", "is missing"),
    (r"give it as input, as attribute or as the output's own shape", "give it, or out"),
    (r"expected -1 \(no limit\), 0 or more bytes", "expected None (no limit), 0 or more bytes"),
    (r"expected 0 \(all\) or more", "expected None (all), 0 (all) or more"),
)


def translated(error: Exception, words: Mapping[str, str]) -> Exception:
    """The same error; ``words`` has the caller's for some of the specification's."""
    text = re.sub(
        r"(attribute '\w+') has type ([\w\[\]]+), expected ([\w\[\]]+)$",
        lambda m: f"{m[1]} is {_KINDS.get(m[2], m[2])}, expected {_KINDS.get(m[3], m[3])}",
        str(error),
    )
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    if words:
        names = "|".join(sorted(words, key=len, reverse=True))
        text = re.sub(rf"\b({names})\b", lambda m: words[m[1]], text)
    return (ValueError if isinstance(error, ValueError) else TypeError)(text)
