"""The server's log as JSON lines on standard error."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

from typing_extensions import override

from annotator.ui.streamlit_features import set_up_loggers


class JsonFormatter(logging.Formatter):
    """A formatter of JSON records: time (ISO 8601, UTC), level, logger, message, error."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


def log_as_json() -> None:
    """Make all loggers write JSON, provided that uvicorn keeps its loggers."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().handlers[:] = [handler]

    def write_json(logger: logging.Logger) -> None:
        logger.handlers[:] = [handler]

    set_up_loggers(write_json)
