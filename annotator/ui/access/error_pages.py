"""Responses to browsers without access and to sign-in and sign-out: HTML without Streamlit."""

from starlette.responses import HTMLResponse, JSONResponse, Response

PAGE_TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Annotator</title>%s
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em; }
a.button { display: inline-block; padding: 0.5em 1.2em; border-radius: 9px; background: #0b7265; color: #fff;
  text-decoration: none; }
</style>
%s</html>
"""
NO_ACCESS_HTML = """<h1>This browser has no access yet</h1>%s
<p>Open the address that <code>annotator serve</code> printed when it started. It works once. To get a fresh one, for
this browser or another, run <code>annotator link PROJECT</code> on the machine that serves the project.</p>
<p>If this browser had access before and you followed a link to get here: <a href="%s">open the page again</a>.</p>
"""
INVITATION_NEEDED_HTML = """<h1>Open your invitation link</h1>%s
<p>Each person who labels here has a link of their own. Open yours again, or ask an owner of the project for a new
one.</p><p>If you are signed in and followed a link to get here: <a href="%s">open the page again</a>. Answers that this
browser has not sent yet are kept in it.</p>
"""
LOGIN_NEEDED_HTML = """<h1>Sign in to label</h1>%s
<p><a class="button" href="%s">Sign in</a></p><p>Answers that this browser has not sent yet are kept in it.</p>
"""
PROVIDER_UNREACHABLE_HTML = """<h1>The login provider does not answer</h1><p>Nobody can sign in until it does; whoever
is signed in works on. Try again in a few minutes. If it stays so, tell whoever runs this server:
its log has the reason.</p>
"""
SIGN_IN_FAILED_HTML = """<h1>You could not be signed in</h1><p>%s</p>
<p><a class="button" href="%s">Try again</a></p><p>If it stays so, tell whoever runs this server: its log has the
reason. Answers that this browser has not sent yet are kept in it.</p>
"""
NO_ROLE_HTML = """<h1>You are signed in, but not let in yet</h1><p>You are known here as <b>%s</b>, and have no role.
Ask an owner of the project to give you one on the Members page; then <a href="%s">open the page again</a>.</p>%s
"""
OTHER_MEMBER_HTML = """<h1>This link is for somebody else</h1><p>This browser is signed in as <b>%s</b>, and the link
that you opened begins the session of <b>%s</b>. <a href="%s">Stay %s</a>, or sign out and open the link again.</p>%s
"""
SIGNED_OUT_HTML = """<h1>You are signed out</h1><p>Your invitation link signs you in again.</p>"""
SIGN_OUT_LINK_HTML = """<p><a class="button" href="%s">Sign out</a></p>"""
RATE_LIMIT_MESSAGE = "More requests than one person can cause. Wait a few seconds; nothing is lost."


def build_no_access_response(path: str, page_html: str) -> Response:
    """Return a 403 response: JSON for API paths, else the page."""
    if path.startswith("/api/"):
        words = (
            "This browser's access has run out. Reload the page and follow what it says; answers that are not saved "
            "yet wait in this browser."
        )
        return JSONResponse({"error": words}, 403, headers={"cache-control": "no-store"})
    return HTMLResponse(PAGE_TEMPLATE % ("", page_html), 403, headers={"cache-control": "no-store"})


def build_rate_limit_response() -> Response:
    return JSONResponse({"error": RATE_LIMIT_MESSAGE}, 429, headers={"retry-after": "5", "cache-control": "no-store"})


def render_used_key_note(key: str | None) -> str:
    """Return a paragraph about a key that is used up or invalid, or "" without a key."""
    return "" if key is None else "<p>The key in this address was used already, or is not valid any more.</p>"
