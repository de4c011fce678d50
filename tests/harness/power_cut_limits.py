"""How many power cuts the tests try, and whether this machine can record disk writes."""

import os
import shutil
import subprocess

SHARE = float(os.environ.get("ANNOTATOR_POWER_CUTS", "0.25"))  # of the syncs after which the power is cut


def can_record() -> str:
    """Why nothing can be recorded here; "" where it can."""
    if not shutil.which("strace"):
        return "records with strace, which is not installed (Debian: apt install strace)"
    done = subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"], check=False, capture_output=True
    )
    return f"strace may not trace here: {done.stderr.decode()}" if done.returncode else ""


WHY_NOT = can_record()
