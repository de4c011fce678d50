"""The least that a server can do: one route that answers {}.

python -P -m annotator.benchmark.harness.bare PORT
"""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def nothing(request: Request) -> JSONResponse:
    """POST {} -> {}"""
    await request.json()
    return JSONResponse({})


if __name__ == "__main__":
    app = Starlette(routes=[Route("/api/nothing", nothing, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
