"""Problems of an imported source, collected while reading and reported together."""

from annotator.errors import AnnotatorError, combine_problems

MAX_PROBLEMS_SHOWN = 50


class Problems:
    """A collector of a source's problems: it keeps the first fifty, and counts all."""

    def __init__(self) -> None:
        self.count = 0
        self.sentences: list[str] = []

    def clear(self) -> None:
        self.__init__()

    def add(self, sentence: str) -> None:
        """Add one problem, a sentence with its line or field."""
        self.count += 1
        if len(self.sentences) < MAX_PROBLEMS_SHOWN:
            self.sentences.append(sentence)

    def error(self, headline: str) -> AnnotatorError:
        """Return an error that lists the problems below a headline."""
        more = self.count - len(self.sentences)
        sentences = [*self.sentences, *([f"and {more:,} more"] if more else [])]
        return combine_problems(headline, sentences, max_listed=len(sentences))
