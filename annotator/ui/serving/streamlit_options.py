"""Streamlit's options, none read from files or the environment.

A `.streamlit/config.toml` in a downloaded data set could admit foreign origins or drive the app without a
token, so security options are pinned. A test fails when Streamlit adds options.
"""

import os
from typing import Any
from urllib.parse import urlsplit

from annotator.ui.access.serving_modes import LOOPBACK_ADDRESS, LOOPBACK_HOSTS, Access
from annotator.ui.streamlit_features import isolate_options

PINNED_OPTIONS: dict[str, object] = {
    "server.address": LOOPBACK_ADDRESS,  # unset would mean every network this machine is in
    "server.allowedHosts": list(LOOPBACK_HOSTS),
    "server.enableCORS": True,
    "server.corsAllowedOrigins": [],
    "server.enableXsrfProtection": True,
    "server.xsrfCookieSameSite": "strict",
    "server.enableAgentApi": False,
    "server.agentMaxSessions": 1,
    "server.trustedUserHeaders": {},
    "server.unsafeMetricsUserAttributes": [],
    "server.enableStaticServing": False,
    "server.scriptHealthCheckEnabled": False,
    "server.baseUrlPath": "",
    "server.customComponentBaseUrlPath": "",
    "server.sslCertFile": "",
    "server.sslKeyFile": "",
    "server.headless": True,  # the browser is opened here, when the port answers
    "server.showEmailPrompt": False,
    "server.maxUploadSize": 0,  # nothing is uploaded by Streamlit's means (middleware.py refuses the address)
    "server.maxMessageSize": 200,
    "server.maxWidgetStateSize": 5,  # MB; also the most of one message (pacing.LARGEST)
    "server.fileWatcherType": "none",
    "server.folderWatchList": [],
    "server.runOnSave": False,
    "server.allowRunOnSave": False,
    "browser.serverAddress": LOOPBACK_ADDRESS,
    "browser.gatherUsageStats": False,
    "client.allowedOrigins": [],  # whose frames may send messages to the page: nobody's
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,
    "global.e2eTest": False,
    "global.unitTest": False,
    "global.appTest": False,
    "runner.postScriptGC": False,  # it stops all answers after each run; websocket_throttle.py does it for many at once
    "secrets.files": [],
    "theme.fontFaces": [],
}

THEME_OPTIONS: dict[str, object] = {
    "client.showSidebarNavigation": False,
    "logger.hideWelcomeMessage": True,
    # Grounds without a tint of their own, since colours of photos are judged on them.
    "theme.baseRadius": "9px",
    "theme.light.primaryColor": "#0b7265",
    "theme.light.backgroundColor": "#fcfcfb",
    "theme.light.secondaryBackgroundColor": "#efefed",
    "theme.light.textColor": "#1c2221",
    "theme.dark.primaryColor": "#4cc2ae",
    "theme.dark.backgroundColor": "#161817",
    "theme.dark.secondaryBackgroundColor": "#232625",
    "theme.dark.textColor": "#e9ecea",
}


def build_options(access: Access) -> dict[str, Any]:
    """Return the options of st.App.run, and stop Streamlit from reading others."""
    isolate_options()
    for name in [name for name in os.environ if name.startswith("STREAMLIT_")]:
        del os.environ[name]
    reached: dict[str, object] = {"server.port": access.port, "browser.serverPort": access.port}
    if access.is_team:
        reached |= {
            "server.address": access.host,
            "server.allowedHosts": [*LOOPBACK_HOSTS, urlsplit(access.origin).hostname],
            "server.baseUrlPath": access.base_path.strip("/"),
            # A login at a provider begins and ends on its site, whose redirect carries no strict cookie.
            "server.xsrfCookieSameSite": "lax" if access.provider else "strict",
        }
    return PINNED_OPTIONS | THEME_OPTIONS | reached
