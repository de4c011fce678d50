"""Questions about an image to a model, and parsing of its answers.

Answers are "yes", "no" or "unsure" per class of a group, as JSON. Other content is ignored, and unnamed
classes get no score.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WORD_PROBABILITIES = {"yes": 0.9, "true": 0.9, "present": 0.9, "no": 0.1, "false": 0.1, "absent": 0.1, "unsure": 0.5}
"""The probability that a bare word stands for: how often a model is right is learned from people's answers."""

SYSTEM_PROMPT = (
    "You label images for a data set. For each class you are given, say whether the image shows it: yes, no, or "
    "unsure. Answer with one JSON object whose keys are the names of the classes, exactly as given. Write nothing else."
)
RETRY_PROMPT = (
    "That was no answer. Write one JSON object only: the names of the classes as keys, yes, no or unsure as values."
)
_OBJECT = re.compile(r"\{")


@dataclass(frozen=True)
class ClassGroup:
    """The classes of one question, with descriptions or ""."""

    class_ids: tuple[int, ...]
    names: tuple[str, ...]
    descriptions: tuple[str, ...]

    @property
    def prompt(self) -> str:
        """Return the question."""
        lines = [
            json.dumps(name, ensure_ascii=False) + (f": {' '.join(text.split())}" if text else "")
            for name, text in zip(self.names, self.descriptions, strict=True)
        ]
        return "Which of these classes does the image show?\n" + "\n".join(lines)

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of an answer."""
        values = {"type": "string", "enum": ["yes", "no", "unsure"]}
        return {
            "type": "object",
            "properties": dict.fromkeys(self.names, values),
            "required": list(self.names),
            "additionalProperties": False,
        }

    @property
    def max_answer_tokens(self) -> int:
        """Return the token limit of an answer."""
        return 64 + sum(12 + len(name) for name in self.names)


def parse_answer(text: str, group: ClassGroup, tokens: Sequence[Mapping[str, Any]] = ()) -> dict[int, float]:
    """Return the probability in [0, 1] by class id, or {} if the answer is invalid.

    Args:
        tokens: Tokens with log probabilities, if known. A probability is then that of "yes" against "no" where
            the value starts.
    """
    found = _object(text)
    if found is None:
        return {}
    folded: dict[str, list[int]] = {}
    for name, class_id in zip(group.names, group.class_ids, strict=True):
        folded.setdefault(name.strip().casefold(), []).append(class_id)
    exact = dict(zip(group.names, group.class_ids, strict=True))
    chances: dict[int, float] = {}
    for key, value in found.items():
        alike = folded.get(key.strip().casefold(), [])
        class_id = exact.get(key, alike[0] if len(alike) == 1 else None)
        chance = _to_probability(value)
        if class_id is not None and chance is not None:
            by_tokens = _probability_from_tokens(text, key, tokens) if isinstance(value, str) else None
            chances[class_id] = chance if by_tokens is None else by_tokens
    return chances


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text, unwrapped from a single key, or None."""
    decoder = json.JSONDecoder()
    for start in _OBJECT.finditer(text[:200_000]):
        try:
            found, _ = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and found:
            only = next(iter(found.values()))
            return only if len(found) == 1 and isinstance(only, dict) else found
    return None


def _to_probability(value: Any) -> float | None:
    if isinstance(value, bool):
        return WORD_PROBABILITIES["yes" if value else "no"]
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) and 0 <= value <= 1 else None
    return WORD_PROBABILITIES.get(value.strip().casefold()) if isinstance(value, str) else None


def _probability_from_tokens(text: str, key: str, tokens: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the probability of "yes" against "no" where a key's value starts, or None."""
    for written in (json.dumps(key), json.dumps(key, ensure_ascii=False)):
        match = re.search(re.escape(written) + r'\s*:\s*"', text)
        if match:
            return _compare_yes_no(match.end(), tokens)
    return None


def _compare_yes_no(place: int, tokens: Sequence[Mapping[str, Any]]) -> float | None:
    at = 0
    for token in tokens:
        word = token.get("token")
        if not isinstance(word, str):
            return None
        if at <= place < at + len(word):
            shares = {"y": 0.0, "n": 0.0}
            for one in token.get("top_logprobs") or ():
                letters = str(one.get("token", ""))[place - at :] if place > at else str(one.get("token", ""))
                first = letters.strip(' "').casefold()[:1]
                logprob = one.get("logprob")
                if first in shares and isinstance(logprob, int | float) and logprob <= 0:
                    shares[first] += math.exp(logprob)
            total = shares["y"] + shares["n"]
            return shares["y"] / total if total > 0 else None
        at += len(word)
    return None
