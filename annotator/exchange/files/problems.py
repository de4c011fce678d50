"""What is wrong with a source, noted while it is read, so that a person sees it all together."""

from annotator.errors import AnnotatorError, several

PROBLEMS_SHOWN = 50


class Problems:
    """What is wrong with a source: the first fifty in words, and how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self.sentences: list[str] = []

    def clear(self) -> None:
        """Forget all."""
        self.__init__()

    def add(self, sentence: str) -> None:
        """Note one problem; the sentence names its line or field."""
        self.count += 1
        if len(self.sentences) < PROBLEMS_SHOWN:
            self.sentences.append(sentence)

    def error(self, what: str) -> AnnotatorError:
        """The error that lists them, under a first line that says what cannot be done."""
        more = self.count - len(self.sentences)
        sentences = [*self.sentences, *([f"and {more:,} more"] if more else [])]
        return several(what, sentences, shown=len(sentences))
