"""Young or private features of Streamlit. All other modules use public functions of `st`."""

import functools
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from streamlit import auth_util, config, env_util, logger, net_util
from streamlit.components.v2 import component
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx
from streamlit.web import bootstrap
from streamlit.web.server.starlette import starlette_server
from streamlit.web.server.starlette.starlette_server_config import TOKENS_COOKIE_NAME, USER_COOKIE_NAME

# cookies of the provider login: the claims of its ID token, and its tokens
LOGIN_CLAIMS_COOKIE, LOGIN_TOKENS_COOKIE = USER_COOKIE_NAME, TOKENS_COOKIE_NAME

PageApp = st.App


def create_page_app(script: Path, routes: Sequence[BaseRoute], middleware: Sequence[Middleware], **options) -> PageApp:
    """Return an entry script's application. `options` are those of `st.App`."""
    return PageApp(script, routes=routes, middleware=middleware, **options)


def register_component(name: str, *, html: str, css: str, js: str) -> Callable:
    """Return a function that mounts the component."""
    return component(name, html=html, css=css, js=js)


def is_page_script_thread() -> bool:
    """Return whether this thread runs a page script."""
    return get_script_run_ctx(suppress_warning=True) is not None


def read_login_cookie(read_part: Callable[[str], bytes | None], name: str) -> bytes | None:
    """Return a login cookie's content, joined from its parts."""
    return auth_util.get_cookie_with_chunks(read_part, name)


def create_login_token() -> str:
    """Return the token that starts a provider login."""
    return auth_util.encode_provider_token("default")


def isolate_options() -> None:
    """Stop Streamlit from reading option files, looking up addresses and extending `sys.path`."""
    _replace_function(config, "get_config_files", lambda name: [])
    # Called for a foreign origin; the first would ask a server on the net. Our address is known.
    _replace_function(net_util, "get_external_ip", lambda: None)
    _replace_function(net_util, "get_internal_ip", lambda: None)
    _replace_function(bootstrap, "_fix_sys_path", lambda path: None)  # ours imports nothing from the script's folder
    # It looks for the source files of all modules, which the first page waits for.
    _replace_function(env_util, "is_repl", lambda: False)


def set_up_server(prepare_socket: Callable[[socket.socket], object], options: Mapping[str, Any]) -> None:
    """Set a hook for the next server's listening socket, and further options of uvicorn."""
    # Without these two names in a later version, answers are slower and unfinished requests keep their connections.
    bind = getattr(starlette_server, "_bind_socket", None)
    get_options = getattr(starlette_server, "_get_uvicorn_config_kwargs", None)
    if bind is None or get_options is None or hasattr(bind, "__wrapped__"):
        return

    @functools.wraps(bind)
    def bind_and_prepare(*args: object, **given: object) -> socket.socket:
        listening = bind(*args, **given)
        prepare_socket(listening)
        return listening

    starlette_server._bind_socket = bind_and_prepare
    starlette_server._get_uvicorn_config_kwargs = lambda: {**get_options(), **options}


def use_listening_socket(take_socket: Callable[[], socket.socket]) -> None:
    """Make the next server accept connections on a socket that listens already. Call it after `set_up_server`."""
    starlette_server._bind_socket = lambda *args, **given: take_socket()


def set_up_loggers(set_up_logger: Callable[[logging.Logger], None]) -> None:
    """Set up Streamlit's loggers, now and whenever its options are set."""
    _replace_function(logger, "setup_formatter", set_up_logger)
    logger.update_formatter()


def _replace_function(module: ModuleType, name: str, function: Callable[..., Any]) -> None:
    # A version without it must not be served without this protection.
    if not hasattr(module, name):
        raise RuntimeError(f"This version of Streamlit has no {name}. Install the one that pyproject.toml names.")
    setattr(module, name, function)
