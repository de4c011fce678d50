"""Untrusted YAML (https://yaml.org/spec/1.2.2) without object tags and with limited aliases.

Nested aliases can expand to billions of words, so size is counted before values are created.
"""

from typing import Any

ALWAYS_ALLOWED_SIZE = 1_000_000  # letters and entries that any text may stand for
MAX_EXPANSION_RATIO = 10  # letters and entries for each letter of a longer text


def parse_yaml(text: str, *, only_texts: bool = False) -> Any:
    """Parse YAML into plain values, all as text if `only_texts`. ValueError if invalid, too deep or too large."""
    import yaml

    base: Any = yaml.BaseLoader if only_texts else yaml.SafeLoader
    loader = type("Loader", (_ExpansionCounter, base), {})(text)
    loader.most = max(ALWAYS_ALLOWED_SIZE, MAX_EXPANSION_RATIO * len(text))
    try:
        return loader.get_single_data()
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except (TypeError, yaml.YAMLError) as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()


class _ExpansionCounter:
    """A mix-in for PyYAML loaders that limits the size with all aliases expanded to `most`."""

    most: int
    _count = 0

    def __init__(self, text: str):
        super().__init__(text)  # type: ignore[call-arg]  # of the loader that this is mixed with
        self._size_of: dict[str, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node. Raises ValueError for recursive or too large expansion."""
        event, before = self.peek_event(), self._count  # type: ignore[attr-defined]
        is_alias = type(event).__name__ == "AliasEvent"
        if is_alias and event.anchor in self.anchors and event.anchor not in self._size_of:  # type: ignore[attr-defined]
            raise ValueError(f"{event.anchor!r} contains itself")
        node = super().compose_node(parent, index)  # type: ignore[misc]
        if is_alias:
            self._count += self._size_of[event.anchor]
        else:
            self._count += 1 + (len(node.value) if isinstance(node.value, str) else 0)
            if event.anchor:
                self._size_of[event.anchor] = self._count - before
        if self._count > self.most:
            raise ValueError(
                f"its aliases (*{event.anchor or 'name'}) stand for more than {self.most:,} letters and entries, as "
                "no description of a data set does. Write them out, if it is right"
            )
        return node
