"""Questions to a vision-language model about an image, and parsing of its answers.

Answers are "yes", "no" or "unsure" per class, as JSON. Other content is ignored, unnamed classes get no score.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
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
MAX_ANSWER_CHARS = 200_000  # characters of an answer that are searched: a question of 1,000 classes needs about 30,000
MIN_LOG_PROBABILITY = -1000.0  # its exponential is 0: an integer may be too large for math.exp
MAX_OBJECT_STARTS = 50  # braces of an answer at which an object is looked for: each costs a pass over the rest
_OBJECT = re.compile(r"\{")


@dataclass(frozen=True)
class ClassGroup:
    """The classes that one question asks about, with descriptions or ""."""

    class_ids: tuple[int, ...]
    names: tuple[str, ...]
    descriptions: tuple[str, ...]

    @property
    def prompt(self) -> str:
        lines = [
            json.dumps(name, ensure_ascii=False) + (f": {' '.join(text.split())}" if text else "")
            for name, text in zip(self.names, self.descriptions, strict=True)
        ]
        return "Which of these classes does the image show?\n" + "\n".join(lines)

    @property
    def schema(self) -> dict[str, Any]:
        values = {"type": "string", "enum": ["yes", "no", "unsure"]}
        return {
            "type": "object",
            "properties": dict.fromkeys(self.names, values),
            "required": list(self.names),
            "additionalProperties": False,
        }

    @property
    def max_answer_tokens(self) -> int:
        return 64 + sum(12 + len(name) for name in self.names)


def parse_answer(text: str, group: ClassGroup, tokens: Sequence[Mapping[str, Any]] = ()) -> dict[int, float]:
    """Return the probability in [0, 1] by class id, or {} if the answer is invalid.

    Args:
        tokens: Tokens with log probabilities, if known. A probability is then that of "yes" against "no" where
            the value starts.
    """
    text = text[:MAX_ANSWER_CHARS]
    found = _object(text)
    if found is None:
        return {}
    folded: dict[str, list[int]] = {}
    for name, class_id in zip(group.names, group.class_ids, strict=True):
        folded.setdefault(name.strip().casefold(), []).append(class_id)
    exact = dict(zip(group.names, group.class_ids, strict=True))
    token_ends = _find_token_ends(tokens)
    chances: dict[int, float] = {}
    for key, value in found.items():
        alike = folded.get(key.strip().casefold(), [])
        class_id = exact.get(key, alike[0] if len(alike) == 1 else None)
        chance = _to_probability(value)
        if class_id is None or chance is None or (class_id in chances and key not in exact):
            continue
        by_tokens = _probability_from_tokens(text, key, tokens, token_ends) if isinstance(value, str) else None
        chances[class_id] = chance if by_tokens is None else by_tokens
    return chances


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text (without a wrapping object of one key), or None."""
    decoder = json.JSONDecoder()
    for start in islice(_OBJECT.finditer(text), MAX_OBJECT_STARTS):
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
        return float(value) if 0 <= value <= 1 else None
    return WORD_PROBABILITIES.get(value.strip().casefold()) if isinstance(value, str) else None


def _find_token_ends(tokens: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where each token ends in the text, up to the first token without text."""
    ends, end = [], 0
    for token in tokens:
        word = token.get("token")
        if not isinstance(word, str):
            break
        end += len(word)
        ends.append(end)
    return ends


def _probability_from_tokens(
    text: str, key: str, tokens: Sequence[Mapping[str, Any]], token_ends: Sequence[int]
) -> float | None:
    """Return the probability of "yes" against "no" at the token where the value of `key` starts, or None."""
    for written in (json.dumps(key), json.dumps(key, ensure_ascii=False)):
        match = re.search(re.escape(written) + r'\s*:\s*"', text)
        if match:
            return _compare_yes_no(match.end(), tokens, token_ends)
    return None


def _compare_yes_no(place: int, tokens: Sequence[Mapping[str, Any]], token_ends: Sequence[int]) -> float | None:
    """Return the share of "yes" among the alternatives of the token at a place of the text, or None."""
    number = bisect_right(token_ends, place)
    if number == len(token_ends):
        return None
    skipped = place - (token_ends[number - 1] if number else 0)  # characters of the token before the value
    shares = {"y": 0.0, "n": 0.0}
    alternatives = tokens[number].get("top_logprobs")
    for one in alternatives if isinstance(alternatives, list) else ():
        fields: Mapping[str, Any] = one if isinstance(one, dict) else {}
        word, logprob = fields.get("token"), _to_log_probability(fields.get("logprob"))
        first = word[skipped:].strip(' "').casefold()[:1] if isinstance(word, str) else ""
        if first in shares and logprob is not None:
            shares[first] += math.exp(logprob)
    total = shares["y"] + shares["n"]
    return shares["y"] / total if total > 0 else None


def _to_log_probability(value: Any) -> float | None:
    """Return a number from MIN_LOG_PROBABILITY to 0, or None for other values."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return max(value, MIN_LOG_PROBABILITY) if is_number and value <= 0 else None
