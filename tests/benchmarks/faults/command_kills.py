"""Commands that are killed again and again, before each of their steps and at random moments, and checked after it.

For each kill: what somebody finds is what was there before or all of the new, or what the scene allows; the project
agrees with its decisions; nothing that the command has started lives on; the same command goes on and ends well, and
then nothing temporary is left. Some of the commands that go on are killed, too.
"""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from benchmarks.faults.fork_server import ForkServer, ProcessEnd
from benchmarks.faults.guarantee_checks import count_broken
from benchmarks.faults.scenes import SCENES
from benchmarks.faults.scenes.scene import Scene, read_decisions

RANDOM_MOMENT_SHARE = 0.3  # share of the kills that are at a random moment, not at a step
SECOND_KILL_SHARE = 0.25  # share of the commands which go on that are killed, too
MAX_KILLS_IN_A_ROW = 3  # kills of one command, one after the other
PROBLEM_KINDS = ("lost", "doubled", "moved", "mixed", "wrong", "leftovers", "processes", "not_gone_on")


def measure(
    kills: int = 12, seeds: Sequence[int] = (0,), names: Sequence[str] = (), work: Path | None = None
) -> dict[str, Any]:
    """Kill each command `kills` times for each seed.

    Args:
        kills: Kills of each command, for each seed.
        seeds: The seeds, one repetition each.
        names: Names in SCENES; (): all.
        work: A folder that keeps the result of each command and seed, which is not repeated; None: none is kept.

    Returns:
        {"bench", "figures", "ratios", "broken"}: figures per command: kills, and how often they left the old state, the
        new one or another allowed one; and how often each of PROBLEM_KINDS was broken, with a sentence each.

    Raises:
        AnnotatorError: A command is unknown or fails without a kill, or the system has no /proc.
    """
    if unknown := set(names) - set(SCENES):
        raise AnnotatorError(f"Nothing is called {min(unknown)!r}. There is: {', '.join(SCENES)}.")
    if not Path("/proc/self/cmdline").exists():
        raise AnnotatorError("This measurement looks for processes in /proc, which is only there on Linux.")
    figures: Counter[str] = Counter()
    broken: list[str] = []
    for seed in seeds:
        for name in names or SCENES:
            result = _read_result(work, seed, name) or _measure_command(SCENES[name], kills, seed)
            if work:
                work.mkdir(parents=True, exist_ok=True)
                _get_result_path(work, seed, name).write_text(json.dumps(result))
            figures.update(result["figures"])
            broken += [f"seed {seed}: {sentence}" for sentence in result["broken"]]
    return {"bench": "faults", "figures": dict(figures), "ratios": {}, "broken": broken}


def _get_result_path(work: Path, seed: int, name: str) -> Path:
    return work / f"{name}-seed-{seed}.json"


def _read_result(work: Path | None, seed: int, name: str) -> dict[str, Any] | None:
    return (
        json.loads(_get_result_path(work, seed, name).read_text())
        if work and _get_result_path(work, seed, name).exists()
        else None
    )


def _measure_command(kind: type[Scene], kills: int, seed: int) -> dict[str, Any]:
    figures: Counter[str] = Counter()
    broken: dict[str, list[str]] = {problem: [] for problem in PROBLEM_KINDS}
    dying, began = ForkServer(*kind.loads), time.monotonic()
    try:
        with scratch_folder() as scratch:
            _kill_scene(kind, scratch / kind.name, kills, random.Random(f"{kind.name} {seed}"), dying, figures, broken)
    finally:
        dying.close()
    counts, sentences = count_broken(broken)
    figures["commands_killed"] = figures[f"{kind.name}_kills"]
    figures.update({f"commands_{problem}": count for problem, count in counts.items()})
    return {"figures": dict(figures) | {"commands_seconds": time.monotonic() - began}, "broken": sentences}


def _kill_scene(
    kind: type[Scene],
    folder: Path,
    kills: int,
    chance: random.Random,
    dying: ForkServer,
    figures: Counter[str],
    broken: dict[str, list[str]],
) -> None:
    scene = kind(folder / "at")
    base = folder / "base"
    scene.folder.mkdir(parents=True)
    scene.make()
    shutil.copytree(scene.folder, base, symlinks=True)
    before, given = scene.read_state(), read_decisions(base / "project")
    whole = ProcessEnd(0, 0, (), 8.0, "", ()) if scene.is_timed else dying.run(*scene.build_command())
    if whole.status:
        raise AnnotatorError(f"{scene.name} does not end well without a kill:\n{whole.output}")
    after = scene.read_state()
    for problem in [*scene.check_always(), *([] if scene.is_timed else scene.check_completed())]:
        broken["wrong"].append(f"{scene.name}, not killed: {problem}")
    done = 0
    steps = _choose_steps(whole, kills, chance)
    while done < kills:
        _restore_folder(base, scene.folder)
        where, killed = "", 0
        while killed < MAX_KILLS_IN_A_ROW and done < kills and (not killed or chance.random() < SECOND_KILL_SHARE):
            at, seconds = _draw_moment(scene, whole, steps, chance)
            died = dying.run(
                *(scene.build_next_command() if killed else scene.build_command()),
                kill_step=at,
                kill_seconds=seconds,
                ending_seconds=scene.ending,
            )
            where += f"{scene.name} killed {f'before step {at} of {whole.steps}' if at else f'after {seconds:.2f} s'}; "
            if not died.is_killed:
                break
            killed, done = killed + 1, done + 1
            figures[f"{scene.name}_kills"] += 1
            broken["processes"] += [f"{where}{each}" for each in died.leftover_processes]
            _check_killed(scene, where, before, after, figures, broken)
        _repeat_command(scene, where, after, dying, broken)
        _compare_decisions(given, read_decisions(scene.project), where, broken)
        print_progress(f"{scene.name}: {done} of {kills} kills")
    shutil.rmtree(folder)


def _choose_steps(whole: ProcessEnd, kills: int, chance: random.Random) -> list[int]:
    """Return the steps to kill before, in reverse order of use, at most `kills`.

    Steps right before and right after renames and commits come first, then others in random order, each once.
    """
    turns = sorted({step for turn in whole.turns for step in (turn, turn + 1) if step <= whole.steps})
    others = [step for step in range(1, whole.steps + 1) if step not in turns]
    chance.shuffle(turns)
    chance.shuffle(others)
    return [*turns, *others][:kills][::-1]


def _draw_moment(scene: Scene, whole: ProcessEnd, steps: list[int], chance: random.Random) -> tuple[int, float]:
    """Draw the moment of a kill: (step, 0) or (0, seconds)."""
    if scene.is_timed or not steps or chance.random() < RANDOM_MOMENT_SHARE:
        return 0, chance.uniform(0.01, whole.seconds)
    return steps.pop(), 0.0


def _restore_folder(base: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(base, folder, symlinks=True)


def _check_killed(
    scene: Scene, where: str, before: Any, after: Any, figures: Counter[str], broken: dict[str, list[str]]
) -> None:
    """Check the folder of a killed command; add to `figures` what the kill left, and to `broken` what is wrong."""
    try:
        state = scene.read_state()
        if not scene.is_allowed(state, before, after):
            broken["mixed"].append(f"{where}{_describe_difference(state, before, after)}")
        figures[f"{scene.name}_{_classify_state(state, before, after)}"] += 1
        broken["wrong"] += [f"{where}{problem}" for problem in scene.check_always()]
    except Exception as error:
        broken["wrong"].append(f"{where}{type(error).__name__}: {error}")


def _classify_state(state: Any, before: Any, after: Any) -> str:
    return "nothing" if state == before else "all" if state == after else "begun"


def _describe_difference(state: Any, before: Any, after: Any) -> str:
    if isinstance(state, dict) and isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in state if state[name] not in (before.get(name), after.get(name))]
        return f"{names or 'some'} of it is old and some is new"
    return f"{state} is neither {before} nor {after}"


def _repeat_command(scene: Scene, where: str, after: Any, dying: ForkServer, broken: dict[str, list[str]]) -> None:
    """Run the command again after a kill, and check that everything is complete and nothing temporary remains.

    A command that cannot be repeated is not run again if all of it is done.
    """
    try:
        if scene.is_repeatable or scene.read_state() != after:
            again = dying.run(*scene.build_next_command())
            if again.status:
                broken["not_gone_on"].append(f"{where}{again.output[-700:]}")
                return
        if not scene.is_timed and scene.read_state() != after:
            broken["mixed"].append(
                f"{where}then by the same command: {_describe_difference(scene.read_state(), after, after)}"
            )
        broken["leftovers"] += [f"{where}{name}" for name in scene.find_leftovers()]
        broken["wrong"] += [
            f"{where}at the end: {problem}" for problem in scene.check_always() + scene.check_completed()
        ]
    except Exception as error:
        broken["wrong"].append(f"{where}at the end: {type(error).__name__}: {error}")


def _compare_decisions(
    before: Sequence[tuple[Any, ...]], now: Sequence[tuple[Any, ...]], where: str, broken: dict[str, list[str]]
) -> None:
    """Check that each decision made before the kill is stored once and unchanged."""
    stored = {row[0]: row for row in now}
    broken["lost"] += [f"{where}{row}" for row in before if row[0] not in stored]
    broken["moved"] += [f"{where}{row}" for row in before if stored.get(row[0], row) != row]
    broken["doubled"] += [f"{where}{name}" for name, count in Counter(row[0] for row in now).items() if count > 1]
