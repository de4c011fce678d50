"""`annotator ...` and `python -m annotator ...`: run the command line; our own errors are shown without a traceback."""

import sys

from annotator.errors import AnnotatorError


def main() -> None:
    """Run the command line. Exit status 0 done, 1 an AnnotatorError (told on stderr), 2 wrong usage."""
    from annotator.cli import app
    from annotator.cli.printing import guard_terminal

    guard_terminal()
    try:
        app()
    except AnnotatorError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
