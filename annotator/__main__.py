"""`annotator ...` and `python -P -m annotator ...`: run the command line, and print our own errors without a traceback.

Without -P, Python imports modules from the working folder first, which may be a foreign data set.
"""

import os
import sys


def main() -> None:
    """Run the command line.

    The exit status is 0 on success, 1 for an AnnotatorError or a system error (both printed to stderr), and 2 for wrong
    usage.
    """
    os.environ["PYTHONSAFEPATH"] = "1"  # as -P does, for every Python process that anything here starts
    from annotator.cli import app
    from annotator.cli.printing import guard_terminal, install_notice_printer

    guard_terminal()
    install_notice_printer()
    try:
        app()
    except Exception as error:
        from annotator.store.disk.system_errors import translate_error

        told = translate_error(error)
        if told is None:
            raise
        sys.stderr.write(f"Error: {told}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
