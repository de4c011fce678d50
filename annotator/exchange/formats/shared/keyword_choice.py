"""The user's choice of the keywords that are classes, and counts of those that are not."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from annotator.errors import did_you_mean
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.xmp_packets import HIERARCHY_SEPARATOR, KeywordPacket
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation
from annotator.humanize import format_count

ALL_KEYWORDS = "all"
"""The value of --class-columns that makes all keywords classes."""
MAX_KEYWORDS_LISTED = 12
MAX_NAMES_COUNTED = 100_000


class KeywordChoice:
    """A filter and counter of keywords. Its results are complete after the last image.

    Args:
        chosen: Keywords, paths such as "Species|fox", or ALL_KEYWORDS. None asks.
    """

    def __init__(self, chosen: Sequence[str] | None):
        self.is_asked = chosen is None
        self._chosen = [name for name in dict.fromkeys(chosen or ()) if name not in ("", NONE_VALUE)]
        self._is_all = self._chosen == [ALL_KEYWORDS]
        self._wanted = frozenset(self._chosen)
        self._counts: Counter[str] = Counter()
        self._images = 0
        self._paths: dict[str, Counter[str]] = defaultdict(Counter)

    def select_classes(self, packet: KeywordPacket, known: Iterable[str] = ()) -> list[str]:
        """Return the chosen classes of one image. `known` are keywords that are classes already."""
        excluded = frozenset(known)
        paths: dict[str, set[str]] = defaultdict(set)
        for path in packet.paths:
            paths[path[-1]].add(HIERARCHY_SEPARATOR.join(path))
        names = [name for name in packet.list_names() if name not in excluded]
        self._images += bool(names)
        found = []
        for name in names:
            if len(self._counts) < MAX_NAMES_COUNTED or name in self._counts:
                self._counts[name] += 1
                self._paths[name].update(paths.get(name, ()))
            if self._is_all or name in self._wanted or not self._wanted.isdisjoint(paths.get(name, ())):
                found.append(name)
        return found

    def list_questions(self) -> list[Interpretation]:
        """Return the question which keywords are classes, if the user did not choose."""
        if not self._counts or not self.is_asked:
            return []
        most = ",".join(name for name, _ in self._counts.most_common(3) if "," not in name)
        images = format_count(self._images, "image")
        counted = f"{format_count(len(self._counts), 'keyword')} on {images} ({list_most(self._counts)})"
        why = f"{counted}: which are classes"
        return [Interpretation("class_columns", ALL_KEYWORDS, why, False, [*([most] if most else []), NONE_VALUE])]

    def list_sentences(self) -> list[str]:
        """Return what was left out, and the paths of the chosen keywords."""
        said = []
        left = Counter[str]({name: count for name, count in self._counts.items() if not self._is_chosen(name)})
        if left and not self.is_asked:
            said.append(f"{format_count(len(left), 'keyword')} not read, as you say: {list_most(left)}.")
        named = [
            f"{name} ({path})"
            for name, paths in self._paths.items()
            if self._is_chosen(name)
            for path in paths
            if HIERARCHY_SEPARATOR in path
        ]
        if named:
            shown = ", ".join(named[:MAX_KEYWORDS_LISTED]) + (", ..." if len(named) > MAX_KEYWORDS_LISTED else "")
            said.append(f"The last part of a keyword's path is the class, and its path is not kept: {shown}.")
        return said

    def list_paths(self) -> list[list[str]]:
        """Return the different paths of several keywords, each from the most general keyword down."""
        found = dict.fromkeys(path for paths in self._paths.values() for path in paths)
        return [path.split(HIERARCHY_SEPARATOR) for path in found if HIERARCHY_SEPARATOR in path]

    def report_problems(self, problems: Problems) -> None:
        """Report chosen names that no image has, and names that stand for several paths."""
        paths = {path for found in self._paths.values() for path in found}
        if not self._is_all:
            for name in self._chosen:
                if name not in self._counts and name not in paths:
                    problems.add(
                        f"--class-columns: no image has the keyword {name!r}. {did_you_mean(name, self._counts)}"
                    )
        for name, found in self._paths.items():
            if len(found) > 1 and (self._is_all or name in self._wanted):
                listed = " and ".join(f"{path!r} ({count:,})" for path, count in found.most_common(5))
                problems.add(
                    f"the keyword {name!r} is the last part of {listed}. Choose the one that is the class by its path: "
                    f'--class-columns "{next(iter(found))}"'
                )

    def _is_chosen(self, name: str) -> bool:
        return self._is_all or name in self._wanted or not self._wanted.isdisjoint(self._paths.get(name, ()))


def list_most(counts: Counter[str]) -> str:
    """Return the most frequent keywords with their counts: "fox 310, deer 120, ..."."""
    shown = [f"{name} {count:,}" for name, count in counts.most_common(MAX_KEYWORDS_LISTED)]
    return ", ".join(shown) + (", ..." if len(counts) > MAX_KEYWORDS_LISTED else "")
