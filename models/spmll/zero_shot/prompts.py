"""The texts of a class: names in templates, averaged (Radford et al., ICML 2021, sec. 3.1.4)."""

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
    """Return a class's default texts: name, synonyms, name with description."""
    described = [f"{name}, {description.strip().rstrip('.')}"] if description.strip() else []
    return tuple(dict.fromkeys([name, *synonyms, *described]))


def build_prompts(names: Sequence[str], templates: Sequence[str] = PROMPT_TEMPLATES) -> list[str]:
    """Return each name in each template, without duplicates."""
    return list(dict.fromkeys(template.replace(NAME_SLOT, name) for name in names for template in templates))
