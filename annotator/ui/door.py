"""Access control: ASGI middleware in front of everything this process serves, Streamlit's pages and WebSocket included.

A browser gets in with a one-time key in the address (`/?key=...`), which `annotator serve` and `annotator link` print.
The key is exchanged for a cookie and removed from the address. Without the cookie nothing is answered. A request that
names another origin is refused even with the cookie: browsers send the cookies of one port of a machine to all of them.
Two addresses are for programs, which have an access token instead of the cookie; they refuse whatever names an origin.
"""

import html
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotator.ui.keys import Keys, cookie_name
from annotator.ui.tokens import DAY, VALID_DAYS, Tokens

HOSTS = ("127.0.0.1", "localhost")  # requests for any other name are refused (DNS rebinding)
PREDICTIONS_PATH, METRICS_PATH = "/api/predictions", "/metrics"
FOR_PROGRAMS = (PREDICTIONS_PATH, METRICS_PATH)  # need no cookie: their routes take an access token and nothing else
HEALTH = "/_stcore/health"  # open to all, so that a script can wait for the server; the answer is only "ok"
READY = "/ready"  # open to all; says in a few words whether people can work
HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Annotator</title>%s
<style>
body { font: 16px/1.5 sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em; color-scheme: light dark; }
</style>
%s</html>
"""
CLOSED = """<h1>This browser has no access yet</h1>%s
<p>Open the address that <code>annotator serve</code> printed when it started. It works once. To get a fresh one, for
this browser or another, run <code>annotator link PROJECT</code> on the machine that serves the project.</p>
<p>If this browser had access before and you followed a link to get here: <a href="%s">open the page again</a>.</p>
"""


class Door:
    """The middleware. tokens: signs the cookies; keys: the one-time keys of this run, None if it has none."""

    def __init__(self, app: ASGIApp, tokens: Callable[[], Tokens], keys: Keys | None = None):
        self.app, self.tokens, self.keys = app, tokens, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = _with_headers(send, headers.get("host", ""))
        answer = self._refusal(scope, headers)
        if answer is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that is not let through; None for one that is."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not _is_own(host):
            return PlainTextResponse(f"This server answers to {' and '.join(HOSTS)} only.\n", 403)
        if origin != f"http://{host}" and (origin is not None or scope["type"] == "websocket"):
            return PlainTextResponse("A page of another origin may not ask this server for anything.\n", 403)
        if scope["path"] in FOR_PROGRAMS and scope["type"] == "http":
            return None if origin is None else PlainTextResponse("This is for programs, not for web pages.\n", 403)
        port = scope["server"][1]
        admitted = self.tokens().admits(HTTPConnection(scope).cookies.get(cookie_name(port), ""), port)
        if scope["type"] == "websocket":
            return None if admitted else Response()
        key = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("key")
        if key is not None and scope["method"] == "GET" and not scope["path"].startswith("/api/"):
            # A browser with access does not use the key up: another browser can still take it.
            if admitted:
                return self._welcome(scope, headers, None)
            if self.keys is not None and self.keys.take(key):
                return self._welcome(scope, headers, port)
        if admitted or (scope["path"] == READY and scope["type"] == "http"):
            return None
        if scope["path"] == HEALTH:
            return PlainTextResponse("ok")
        return _closed(scope, key)

    def _welcome(self, scope: Scope, headers: Headers, port: int | None) -> Response:
        """Redirect to the same address without the key; with a port, also set the cookie."""
        place = _without_key(scope)
        if headers.get("sec-fetch-site") == "cross-site":
            # Browsers send no strict cookie along a redirect that began on another site (a chat, a mail, the file that
            # opens the browser). A request that this page makes begins on our own site.
            text = f'<meta http-equiv="refresh" content="0; url={html.escape(place)}">'
            answer: Response = HTMLResponse(PAGE % (text, f'<p><a href="{html.escape(place)}">Continue</a></p>'))
        else:
            answer = RedirectResponse(place, status_code=303)
        answer.headers["cache-control"] = "no-store"
        if port is not None:
            answer.set_cookie(
                cookie_name(port),
                self.tokens().cookie(port),
                max_age=VALID_DAYS * DAY,
                path="/",
                httponly=True,
                samesite="strict",
            )
        return answer


def _closed(scope: Scope, key: str | None) -> Response:
    """The answer to a request without the cookie."""
    if scope["path"].startswith("/api/"):
        text = "This browser's access has run out. Run annotator link PROJECT and open the address that it prints."
        return JSONResponse({"error": text}, 403, headers={"cache-control": "no-store"})
    why = "" if key is None else "<p>The key in this address was used already, or has run out.</p>"
    text = CLOSED % (why, html.escape(_without_key(scope)))
    return HTMLResponse(PAGE % ("", text), 403, headers={"cache-control": "no-store"})


def _without_key(scope: Scope) -> str:
    # One slash at the start: "//name/" would be another server's address.
    path = "/" + (scope.get("raw_path") or b"/").decode("latin-1").lstrip("/\\")
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = urlencode([(name, value) for name, value in pairs if name != "key"])
    return f"{path}?{query}" if query else path


def _is_own(host: str) -> bool:
    # Any port: the server may be reached through a forwarded one (ssh -L).
    name, _, port = host.partition(":")
    return name in HOSTS and (port == "" or port.isdecimal())


def _with_headers(send: Send, host: str) -> Callable[[Message], Awaitable[None]]:
    """`send` with headers: other sites may not frame our pages, and our pages may not fetch anything from elsewhere."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            headers["content-security-policy"] = _policy(host)
        await send(message)

    return send_with_headers


def _policy(host: str) -> str:
    return (
        "default-src 'self'; "
        # Streamlit's pages and charts need inline scripts and eval; neither can fetch from elsewhere.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
        f"connect-src 'self' data: blob: ws://{host if _is_own(host) else ''}; "
        "frame-src 'self' blob: data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )
