"""The tools that come with `bench finish`: ours and four baselines. The table is the registry.

engine.py is the project, model and memory that all but the form work on. Begin with autopilot.py.
"""

from collections.abc import Callable

from annotator.benchmark.finish.protocol import Tool
from annotator.benchmark.finish.tools.autopilot import AutopilotTool
from annotator.benchmark.finish.tools.baselines import FormTool, GridsTool, RandomTool, UncertaintyTool

OURS, RIVAL = "autopilot", "form"
TOOLS: dict[str, Callable[[], Tool]] = {
    OURS: AutopilotTool,
    RIVAL: FormTool,
    "random": RandomTool,
    "grids": GridsTool,
    "uncertainty": UncertaintyTool,
}
