"""Problems of a source, collected while it is read, so that a person sees them all together."""

from annotator.errors import AnnotatorError, combine_problems

MAX_PROBLEMS_SHOWN = 50


class Problems:
    """The problems of a source: the first fifty as sentences, and the number of all."""

    def __init__(self) -> None:
        self.count = 0
        self.sentences: list[str] = []

    def clear(self) -> None:
        """Forget all problems noted so far."""
        self.__init__()

    def add(self, sentence: str) -> None:
        """Note one problem; the sentence names its line or field."""
        self.count += 1
        if len(self.sentences) < MAX_PROBLEMS_SHOWN:
            self.sentences.append(sentence)

    def error(self, headline: str) -> AnnotatorError:
        """Return the error that lists the problems, under a first line that says what cannot be done."""
        more = self.count - len(self.sentences)
        sentences = [*self.sentences, *([f"and {more:,} more"] if more else [])]
        return combine_problems(headline, sentences, max_listed=len(sentences))
