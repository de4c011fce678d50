"""The texts of a class: its names, put into templates.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021, sec. 3.1.4: the
average of several prompts, in the space of the network, is more accurate than one.
"""

from collections.abc import Sequence

NAME_SLOT = "{}"
PROMPT_TEMPLATES = (
    "a photo of a {}.",
    "a photo of the {}.",
    "a photo of several {}.",
    "a close-up photo of a {}.",
    "a photo with a {} in the background.",
    "{}",
)
BACKGROUND_PROMPTS = ("a photo.", "a photo of something.", "a photo of the background.")
"""Texts that fit any image: what a class has to be more than."""


def list_names(name: str, synonyms: Sequence[str] = (), description: str = "") -> tuple[str, ...]:
    """Return the default texts for a class: its name, synonyms, and its name with its description."""
    described = [f"{name}, {description.strip().rstrip('.')}"] if description.strip() else []
    return tuple(dict.fromkeys([name, *synonyms, *described]))


def build_prompts(names: Sequence[str], templates: Sequence[str] = PROMPT_TEMPLATES) -> list[str]:
    """Return each name in each template, without repetitions."""
    return list(dict.fromkeys(template.replace(NAME_SLOT, name) for name in names for template in templates))
