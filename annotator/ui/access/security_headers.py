"""The security headers of every response. Imports nothing: the early server sends them before Streamlit is loaded."""

SECURITY_HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def build_security_headers(websocket_origin: str) -> dict[str, str]:
    """Return the headers of a response from a host.

    Args:
        websocket_origin: Origin of the app's WebSocket, such as ws://127.0.0.1:8501.
    """
    content_policy = (
        "default-src 'self'; "
        # Streamlit's pages and charts need inline scripts and eval; neither can fetch from elsewhere.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
        f"connect-src 'self' data: blob: {websocket_origin}; "
        "frame-src 'self' blob: data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )
    return SECURITY_HEADERS | {"content-security-policy": content_policy}
