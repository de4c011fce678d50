"""Access control: ASGI middleware in front of everything this process serves, Streamlit's pages and WebSocket included.

Where the project is served to this computer only, a browser gets in with a one-time key in the address (`/?key=...`),
which `annotator serve` and `annotator link` print. The key is exchanged for a cookie and removed from the address.
Where it is served to its members (serving_modes.py), a session gives access. An invitation link begins it, or a login
at a provider, which is Streamlit's. What a member may do is decided by the routes (routes/guard.py) and the store.

Without a cookie nothing is answered. A request that names another origin is refused even with the cookie: browsers send
the cookies of one port of a machine to all its ports. Two addresses are for programs, which have an access token
instead of the cookie; they refuse every request that names an origin. Where there are members, each has an allowance of
requests, and so have programs by their token and everybody else by their address.
"""

import hashlib
import html
from collections.abc import Awaitable, Callable, Hashable, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import auth_util

from annotator.roles import Right
from annotator.store.database import authorization as acting
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access import sessions as sessions_
from annotator.ui.access.access_keys import Keys, cookie_name, listing_name
from annotator.ui.access.error_pages import (
    BY_INVITATION,
    BY_LOGIN,
    CLOSED,
    OTHER,
    PAGE,
    SIGN_OUT_LINK,
    SIGNED_OUT,
    WAITING,
    closed,
    too_many,
    used_up,
)
from annotator.ui.access.oidc import in_words
from annotator.ui.access.pacing import Pacing
from annotator.ui.access.rate_limit import Allowance, network_of
from annotator.ui.access.serving_modes import HOSTS, OIDC, Access
from annotator.ui.access.sessions import Sessions
from annotator.ui.access.tokens import DAY, VALID_DAYS, Tokens

PREDICTIONS_PATH, METRICS_PATH = "/api/predictions", "/metrics"
FOR_PROGRAMS = (PREDICTIONS_PATH, METRICS_PATH)  # need no cookie: their routes take an access token and nothing else
HEALTH = "/_stcore/health"  # open to all, so that a script can wait for the server; the answer is only "ok"
READY = "/ready"  # open to all; says in a few words whether people can work
UPLOADS = "/_stcore/upload_file/"  # Streamlit's, which no page of ours uses: files are sent to /api/upload
SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
FROM_PROVIDER = ("/auth/login", "/oauth2callback")  # Streamlit's, on the way to a login provider and back
PROVIDER_SIGN_OUT = "/auth/logout"  # Streamlit's, too
MEMBER = "annotator.member"  # in the scope of a request: the member who asks; absent where there are no members
HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Door:
    """The middleware.

    Attributes:
        tokens: Signs the cookies.
        keys: The one-time keys of this run, None if it has none.
        access: How the project is reached; None: from this computer only.
        sessions: The sessions of its members; None without members.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Callable[[], Tokens],
        keys: Keys | None = None,
        access: Access | None = None,
        sessions: Sessions | None = None,
    ):
        self.app, self.tokens, self.keys, self.access, self.sessions = app, tokens, keys, access, sessions
        self.base = access.base if access else ""
        self.allowance, self.pacing = Allowance(), Pacing()
        self._accepted: set[bytes] = set()  # digests of tokens that a route for programs has accepted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the app with the session of its member."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = self._with_headers(send, headers.get("host", ""))
        answer = await self._answer(scope, headers)
        if answer is None:
            path = scope["path"].removeprefix(self.base)
            if path in FROM_PROVIDER:
                send = in_words(scope, receive, send, self.base + SIGN_IN, MEMBER in scope)
            elif path in FOR_PROGRAMS:
                send = self._noting_tokens(headers, send)
            elif scope["type"] == "websocket":
                member: Member | None = scope.get(MEMBER)
                await self.pacing.carry(self.app, scope, receive, send, member.id if member else _client(scope))
                return
            else:
                send = self._with_listing(scope, send)
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, send)

    async def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a request that is not let through; None where the request may pass."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own(host):
            names = [self.access.netloc, *HOSTS] if self.access and self.access.is_team else HOSTS
            return PlainTextResponse(f"This server answers to {' and '.join(dict.fromkeys(names))} only.\n", 403)
        if origin != self._origin_of(host) and (origin is not None or scope["type"] == "websocket"):
            return PlainTextResponse("A page of another origin may not ask this server for anything.\n", 403)
        if not scope["path"].startswith(f"{self.base}/"):
            return RedirectResponse(f"{self.base}/") if scope["path"] in ("/", self.base) else _not_found()
        path = scope["path"].removeprefix(self.base)
        if path.startswith(UPLOADS):
            return _not_found()
        if path in FOR_PROGRAMS and scope["type"] == "http":
            if origin is not None:
                return PlainTextResponse("This is for programs, not for web pages.\n", 403)
            token = _digest(headers)
            return self._limited(token if token in self._accepted else _client(scope))
        if path == READY and scope["type"] == "http":
            return self._limited(_client(scope))
        if self.sessions is None:
            return self._of_this_computer(scope, headers, path)
        return await self._of_member(self.sessions, scope, headers, path)

    def _limited(self, who: Hashable) -> Response | None:
        """Return the answer to somebody who asks too much; None for everybody else, and where there are no members."""
        return None if self.sessions is None or self.allowance.consume(who) else too_many()

    def _of_this_computer(self, scope: Scope, headers: Headers, path: str) -> Response | None:
        """Return the answer to a request where there are no members; None where the request may pass."""
        port = scope["server"][1]
        admitted = self.tokens().admits(HTTPConnection(scope).cookies.get(cookie_name(port), ""), port)
        if scope["type"] == "websocket":
            return None if admitted else Response()
        key = _query(scope).get("key")
        if key is not None and scope["method"] == "GET" and not path.startswith("/api/"):
            # A browser with access does not use the key up: another browser can still take it.
            if admitted:
                return self._welcome(scope, headers)
            if self.keys is not None and self.keys.take(key)[0]:
                return self._welcome(scope, headers, port, self.tokens().cookie(port))
        if admitted:
            return None
        if path == HEALTH:
            return PlainTextResponse("ok")
        return closed(path, CLOSED % (used_up(key), _address(scope)))

    async def _of_member(self, sessions: Sessions, scope: Scope, headers: Headers, path: str) -> Response | None:
        """Return the answer to a request where there are members; None where the request may pass."""
        cookies = HTTPConnection(scope).cookies
        member = await _member(sessions, cookies)
        if answer := self._limited(member.id if member else _client(scope)):
            return answer
        sessions_.set_asking_member(member.id if member else acting.NOBODY)
        is_in = member is not None and member.highest_right >= Right.LOOK
        if is_in and (scope["type"] == "websocket" or path in FROM_PROVIDER):
            scope[MEMBER] = member
        if scope["type"] == "websocket":
            return None if is_in else Response()
        if path in (SIGN_IN, SIGN_OUT, PROVIDER_SIGN_OUT, *FROM_PROVIDER):
            return await self._way(sessions, scope, headers, path)
        given = _query(scope)
        is_page = scope["method"] == "GET" and not path.startswith("/api/")
        if is_page and ("key" in given or "invitation" in given):
            answer = await self._begun(sessions, scope, headers, member, given)
            if answer is not None:
                return answer
        if is_in:
            scope[MEMBER] = member
            return None
        if path == HEALTH:
            return PlainTextResponse("ok")
        if member is not None:
            sign_out = SIGN_OUT_LINK % (self.base + SIGN_OUT)
            return closed(path, WAITING % (html.escape(member.name), _address(scope), sign_out))
        if self.access and self.access.mode == OIDC:
            return closed(path, BY_LOGIN % (used_up(given.get("key")), self.base + SIGN_IN))
        why = used_up(given.get("key") or given.get("invitation"))
        return closed(path, BY_INVITATION % (why, _address(scope)))

    async def _way(self, sessions: Sessions, scope: Scope, headers: Headers, path: str) -> Response | None:
        """Return the answer to a request to or from a login provider, or to sign out; None where it may pass."""
        is_oidc = self.access is not None and self.access.mode == OIDC
        if scope["method"] != "GET" or (path != SIGN_OUT and not is_oidc):
            return _not_found()
        if path in (SIGN_OUT, PROVIDER_SIGN_OUT) and headers.get("sec-fetch-site") not in (None, "same-origin"):
            return PlainTextResponse("A page of another origin may not sign anybody out.\n", 403)
        if path in (SIGN_OUT, PROVIDER_SIGN_OUT):
            await run_sync(sessions.end, HTTPConnection(scope).cookies)
        if path == SIGN_OUT:
            return self._signed_out(scope, is_oidc)
        if path == SIGN_IN:
            # Streamlit's login takes a name of the provider that it has signed itself, two minutes ago at most.
            token = auth_util.encode_provider_token("default")
            return _redirect(f"{self.base}{FROM_PROVIDER[0]}?{urlencode({'provider': token})}")
        return None

    def _signed_out(self, scope: Scope, is_oidc: bool) -> Response:
        if is_oidc:
            answer = _redirect(f"{self.base}{PROVIDER_SIGN_OUT}")
        else:
            answer = HTMLResponse(PAGE % ("", SIGNED_OUT), headers={"cache-control": "no-store"})
        answer.delete_cookie(cookie_name(scope["server"][1]), path=f"{self.base}/")
        if self.access and self.access.home:
            answer.delete_cookie(listing_name(scope["server"][1]), path=urlsplit(self.access.home).path)
        return answer

    async def _begun(
        self, sessions: Sessions, scope: Scope, headers: Headers, member: Member | None, given: Mapping[str, str]
    ) -> Response | None:
        """Return the answer to an invitation link or a one-time key; None where it is not valid."""
        if "invitation" in given:
            invited = await run_sync(members.by_link, sessions.db, given["invitation"])
        elif member is not None and member.highest_right >= Right.LOOK:
            return self._welcome(scope, headers)  # does not use the key up: another browser can still take it
        else:
            is_valid, id_ = self.keys.take(given["key"]) if self.keys else (False, None)
            invited = await run_sync(members.by_key, sessions.db, id_) if is_valid and id_ is not None else None
        if invited is None:
            return None
        if member is not None and member.id != invited.id:
            # Else a link sent by somebody would make people label in another's name without noticing.
            own, other = html.escape(member.name), html.escape(invited.name)
            sign_out = SIGN_OUT_LINK % (self.base + SIGN_OUT)
            return closed("", OTHER % (own, other, _address(scope), own, sign_out))
        await run_sync(sessions.look_up, True)
        port = scope["server"][1]
        return self._welcome(scope, headers, port, self.tokens().session_cookie(port, invited.id, invited.signed_in_at))

    def _welcome(self, scope: Scope, headers: Headers, port: int = 0, cookie: str = "") -> Response:
        """Redirect to the same address without the key; with a cookie, also set it."""
        place = _without_key(scope)
        if headers.get("sec-fetch-site") == "cross-site":
            # Browsers send no strict cookie along a redirect that began on another site (a chat, a mail, the file that
            # opens the browser). A request that this page makes begins on our own site.
            text = f'<meta http-equiv="refresh" content="0; url={html.escape(place)}">'
            answer: Response = HTMLResponse(PAGE % (text, f'<p><a href="{html.escape(place)}">Continue</a></p>'))
        else:
            answer = RedirectResponse(place, status_code=303)
        answer.headers["cache-control"] = "no-store"
        if cookie:
            answer.set_cookie(
                cookie_name(port),
                cookie,
                max_age=VALID_DAYS * DAY,
                path=f"{self.base}/",
                httponly=True,
                samesite="strict",
            )
        return answer

    def _noting_tokens(self, headers: Headers, send: Send) -> Send:
        """Return a `send` that notes whether a program's token was accepted.

        From the first accepted request on, a program is limited by its token. Until then it is limited by its address,
        because invented tokens would have an allowance each.
        """

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                self._accepted.add(_digest(headers))
            elif message["type"] == "http.response.start" and message["status"] == 401:
                self._accepted.discard(_digest(headers))
            await send(message)

        return send_and_note

    def _with_listing(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that sets the cookie by which a start page lists this project.

        It is set for the member who opens a page of it, unless their browser has a valid one.
        """
        member: Member | None = scope.get(MEMBER)
        home = self.access.home if self.access else ""
        if not home or member is None or scope["type"] != "http" or scope["method"] != "GET":
            return send
        path, port = scope["path"].removeprefix(self.base), scope["server"][1]
        had = self.tokens().listing(HTTPConnection(scope).cookies.get(listing_name(port), ""), port)
        is_page = not path.startswith(("/api/", "/_stcore/", "/static/"))
        session = self.sessions.session(HTTPConnection(scope).cookies) if self.sessions else ""
        if not is_page or (had and (had[0], had[2]) == (member.id, session) and had[1] > member.sessions_since):
            return send
        cookie = Response()
        cookie.set_cookie(
            listing_name(port),
            self.tokens().listing_cookie(port, member.id, session),
            max_age=VALID_DAYS * DAY,
            path=urlsplit(home).path,
            httponly=True,
            samesite="lax",
        )
        made = next(value for name, value in cookie.raw_headers if name == b"set-cookie")

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", made.decode("latin-1"))
            await send(message)

        return send_with_cookie

    def _is_own(self, host: str) -> bool:
        if self.access is not None and host == self.access.netloc:
            return True
        # Any port: the server may be reached through a forwarded one (ssh -L).
        name, _, port = host.partition(":")
        return name in HOSTS and (port == "" or port.isdecimal())

    def _origin_of(self, host: str) -> str:
        """Return the origin that a browser names for our own pages."""
        return self.access.origin if self.access and host == self.access.netloc else f"http://{host}"

    def _with_headers(self, send: Send, host: str) -> Callable[[Message], Awaitable[None]]:
        """Return a `send` that adds the security headers.

        Other sites may not frame our pages, our pages may not fetch anything from elsewhere, and cookies do not travel
        unencrypted.
        """
        is_https = self._origin_of(host).startswith("https://")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                scheme = "wss" if is_https else "ws"
                headers["content-security-policy"] = _policy(f"{scheme}://{host if self._is_own(host) else ''}")
                if is_https:
                    message["headers"] = [_secure(name, value) for name, value in message["headers"]]
            await send(message)

        return send_with_headers


async def _member(sessions: Sessions, cookies: Mapping[str, str]) -> Member | None:
    if sessions.is_stale:
        await run_sync(sessions.look_up)
    member = sessions.member(cookies)
    if member is None and sessions.has_login(cookies):
        await run_sync(sessions.sign_in, cookies)
        member = sessions.member(cookies)
    return member


def _client(scope: Scope) -> str:
    return network_of((scope.get("client") or ("",))[0])


def _digest(headers: Headers) -> bytes:
    return hashlib.sha256(headers.get("authorization", "").encode("latin-1")).digest()


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


def _not_found() -> Response:
    return PlainTextResponse("There is nothing here.\n", 404)


def _redirect(address: str) -> Response:
    return RedirectResponse(address, status_code=303, headers={"cache-control": "no-store"})


def _address(scope: Scope) -> str:
    return html.escape(_without_key(scope))


def _without_key(scope: Scope) -> str:
    # One slash at the start: "//name/" would be another server's address.
    path = "/" + (scope.get("raw_path") or b"/").decode("latin-1").lstrip("/\\")
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = urlencode([(name, value) for name, value in pairs if name not in ("key", "invitation")])
    return f"{path}?{query}" if query else path


def _secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return the header; a cookie in it is marked as one that browsers send encrypted only."""
    is_open = name == b"set-cookie" and b"; secure" not in value.lower()
    return name, value + b"; Secure" if is_open else value


def _policy(socket: str) -> str:
    return (
        "default-src 'self'; "
        # Streamlit's pages and charts need inline scripts and eval; neither can fetch from elsewhere.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
        f"connect-src 'self' data: blob: {socket}; "
        "frame-src 'self' blob: data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )
