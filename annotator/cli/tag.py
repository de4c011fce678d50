"""The command that prelabels all images with a vision-language model on a server."""

import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, show_progress
from annotator.errors import AnnotatorError
from annotator.humanize import format_count, format_duration
from annotator.process_stop import STOP_SIGNALS, watch_parent
from annotator.settings import TAGGER_KEY_VARIABLE, get_login_name

if TYPE_CHECKING:
    from annotator.store.database.database import Database

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator tag birds --url http://127.0.0.1:11434/v1 --model qwen2.5vl",
        "annotator tag birds --url http://127.0.0.1:8000/v1 --model qwen2.5vl --limit 100 --jobs 8",
        "annotator tag birds --url https://api.example.com/v1 --model vision --key-from MY_KEY --images-may-leave",
    )
)
def tag(
    project: ProjectArgument,
    url: Annotated[str, typer.Option(metavar="ADDRESS", help="The server's address, which usually ends in /v1.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="The model's name at the server.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the predictions [default: the model's].")] = "",
    key_from: Annotated[
        str, typer.Option(metavar="VARIABLE", help="The environment variable that holds the server's key.")
    ] = TAGGER_KEY_VARIABLE,
    images_may_leave: Annotated[
        bool, typer.Option("--images-may-leave", help="The server may be on another machine.")
    ] = False,
    pixels: Annotated[int, typer.Option(help="Longer side of the images that are sent.", min=64, max=4096)] = 448,
    group: Annotated[int, typer.Option(help="Classes in one question.", min=1, max=1000)] = 40,
    jobs: Annotated[int, typer.Option(help="Questions at the same time.", min=1, max=64)] = 2,
    limit: Annotated[int, typer.Option(help="Ask about so many images at most [default: all].", min=0)] = 0,
    timeout: Annotated[float, typer.Option(help="Seconds until a question is given up.", min=1)] = 120.0,
    again: Annotated[bool, typer.Option("--again", help="Also ask about images that have been asked about.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Do not try first whether the model sees: it names three colours.")
    ] = False,
    as_json: AsJson = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
) -> None:
    """Ask a vision-language model which classes each image shows. Its answers become predictions, never labels.

    Works with any server for the OpenAI chat format with images: Ollama, vLLM, llama.cpp, LM Studio, or a hosted one.
    Answers are stored every few seconds. Ctrl+C stops, and the same command resumes.
    """
    from annotator.exchange.tagging.chat_server import ChatServer
    from annotator.exchange.tagging.tagging_run import TaggingOptions, tag_images
    from annotator.store.database.database import Database
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.runs import tagging_state
    from annotator.store.runs.tagging_state import TaggingState

    stop = threading.Event()
    if watched:
        watch_parent(stop.set)  # exits as by a kill, after which the same command goes on
    set_private_umask()
    db, given = Database(project), os.environ.get(key_from, "").strip() if key_from else ""
    if key_from not in ("", TAGGER_KEY_VARIABLE) and not given:
        raise AnnotatorError(f"The environment has no variable {key_from}, which should hold the key of the server.")
    server = ChatServer(url, given, timeout)
    if given and not server.is_local and not url.lower().startswith("https:"):
        raise AnnotatorError(
            f"{server.display_url} is not encrypted, so others could read the key. Use its https address."
        )
    if not server.is_local and not images_may_leave and not _confirm_sending(url, watched):
        raise AnnotatorError(
            f"{server.display_url} is not on this machine, so images would leave it. If they may: --images-may-leave"
        )
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    options = TaggingOptions(model, name or model[-60:].strip(), pixels, group, jobs, limit, again, unchecked)
    try:
        with show_progress("Asking the model") as show:

            def tell(state: TaggingState) -> None:
                left = f", {format_duration(state.seconds_left)} left" if state.seconds_left else ""
                show(state.done, state.of, f"{state.per_minute:.0f} images a minute{left}")

            outcome = tag_images(db, server, options, _find_requester(db, watched), tell, stop)
    except AnnotatorError as error:
        if watched:
            tagging_state.set_result(db, {"name": options.name, "error": str(error), "at": time.time()})
        raise
    facts = {"name": options.name, "model": model, **asdict(outcome)}
    if watched and not (
        stop.is_set() and tagging_state.get_request(db) is not None
    ):  # else the app has ended: it goes on
        tagging_state.set_result(
            db, {**{key: facts[key] for key in ("name", "images", "without", "error")}, "at": time.time()}
        )

    def text() -> None:
        took = format_duration(outcome.seconds)
        print(f"{format_count(outcome.images, 'image')} in {took}: predictions {escape_unprintable(options.name)!r}.")
        if outcome.had:
            print(f"{format_count(outcome.had, 'image')} had been asked about before.")
        if outcome.without:
            print(f"{format_count(outcome.without, 'question')} stayed without an answer.")
        if outcome.unread:
            print(f"{format_count(outcome.unread, 'image')} could not be read.")
        if outcome.is_stopped:
            print("Stopped. The same command goes on from there.")

    print_result(facts, as_json, text)
    if outcome.error:
        raise AnnotatorError(outcome.error)
    if outcome.is_stopped:
        sys.stdout.flush()
        os._exit(0 if watched else 130)  # threads that still wait for the server would hold the process up


def _find_requester(db: "Database", watched: bool) -> str:
    """Return who asked for the predictions: on the Settings page, else on this terminal."""
    from annotator.store.runs import tagging_state

    request = tagging_state.get_request(db) if watched else None
    return request.by if request else get_login_name()


def _confirm_sending(url: str, watched: bool) -> bool:
    if watched or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    host = urlsplit(url).hostname or url
    return typer.confirm(f"All images will be sent to {escape_unprintable(host)}. Go on?", err=True)
