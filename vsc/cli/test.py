"""``vsc test``: runs scenario files on the test driver. Never starts a JVM."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vsc.cli.common import (
    add_allow,
    add_functions,
    add_include_roots,
    add_variables,
    allowed_codes,
    allowed_modules,
    bounded,
    print_payload,
    read_texts,
    variables,
    warn_unknown,
    with_included,
    write_file,
)
from vsc.cli.errors import UsageError
from vsc.cli.problems import Problem, tell, tell_findings, use_color
from vsc.cli.watch import add_watch, watched

if TYPE_CHECKING:
    from vsc.scenario import Outcome, ScenarioError, ScenarioFile

__all__ = ["add_arguments", "execute"]

_SUFFIX = ".scenario.yaml"
_MOST_RUNS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["."],
        help=f"a scenario file (*{_SUFFIX}), or a folder to look for them in (default: this folder)",
    )
    parser.add_argument("--format", choices=("text", "junit"), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file instead of standard output")
    parser.add_argument(
        "--accept", action="store_true", help="write the results into the files where an expectation is missing"
    )
    parser.add_argument("--accept-changed", action="store_true", help="the same, and where they differ from it")
    parser.add_argument(
        "--disorder", metavar="N", type=_count, help="also run each scenario N times in other orders that graces allow"
    )
    parser.add_argument("--seed", metavar="S", type=int, help="of --disorder: the orders of an earlier run")
    add_watch(parser)
    add_functions(parser)
    add_variables(parser)
    add_include_roots(parser)
    add_allow(parser)


def execute(args: argparse.Namespace) -> int:
    """Runs the scenarios. Returns 1 if one failed or a topology is refused, 2 if a file cannot be used, else 0."""
    if args.watch:
        if args.accept or args.accept_changed:
            raise UsageError("--watch does not go with --accept", "look at what is written, once")
        with bounded(args):
            watched("vsc test", args.paths, lambda: _read(args.paths), lambda: _once(args))
    with bounded(args):
        return _once(args)


def _once(args: argparse.Namespace) -> int:
    given, allowed, silent = variables(args), allowed_modules(args), allowed_codes(args)
    texts, unread = read_texts(_files(args.paths))
    for error in unread:
        tell(error)
    from vsc.scenario import play, report

    files, status = _load(texts, given, allowed, silent)
    if status or unread:
        return 2 if unread else status
    paths = {scenario.topology for file in files for scenario in file.scenarios}
    warn_unknown(given, (_whole(path, given) for path in sorted(paths)))
    if args.accept or args.accept_changed:
        files = _accept(files, texts, given, allowed, args.accept_changed)
    outcomes = [play(scenario) for file in files for scenario in file.scenarios]
    if args.disorder is not None:
        outcomes = _disordered(outcomes, args.disorder, args.seed)
    if args.format == "junit":
        payload = report.junit(outcomes)
    else:
        payload = report.text(outcomes, args.output is None and use_color(sys.stdout))
    if args.output is None:
        print_payload(payload)
    else:
        write_file(args.output, payload)
    tell(report.summary(outcomes))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def _accept(
    files: list[ScenarioFile],
    texts: Mapping[str, str],
    given: Mapping[str, str],
    allowed: tuple[str, ...],
    changed: bool,
) -> list[ScenarioFile]:
    """Writes what is missing into the files, and if `changed` what differs, unless anything else is wrong.

    Returns the files as they are then.
    """
    from vsc.scenario import ScenarioError, accepted, load, play
    from vsc.scenario.player import Disordered, Stopped

    outcomes = {
        file.path: [play(one, lambda wrong: changed or wrong.missing) for one in file.scenarios] for file in files
    }
    wrong = {path: [each for one in found for each in one.wrong] for path, found in outcomes.items()}
    every = [each for found in wrong.values() for each in found]
    if any(isinstance(each, Stopped | Disordered) or not (changed or each.missing) for each in every):
        tell(Problem("nothing is written: something else is wrong", "see the report", severity="warning"))
        return files
    try:
        written = {path: accepted(texts[path], outcomes[path], given) for path, found in wrong.items() if found}
    except ScenarioError as error:
        _tell(error, shown=False, silent=())
        return files
    for path, text in written.items():
        write_file(path, text)
        for each in wrong[path]:
            assert not isinstance(each, Stopped | Disordered)
            tell(f"{path}:{each.position.line}:{each.position.column}: written: {each.subject}")
    return [load(file.path, written.get(file.path, texts[file.path]), given, allowed) for file in files]


def _disordered(outcomes: list[Outcome], runs: int, seed: int | None) -> list[Outcome]:
    """The outcomes, those that have passed with what depends on the order of arrival."""
    from vsc.scenario import disordered

    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    tell(f"--disorder {runs} --seed {seed}")
    found = []
    for outcome in outcomes:
        wrong = None if outcome.wrong else disordered(outcome.scenario, runs, seed)
        found.append(outcome if wrong is None else replace(outcome, wrong=(wrong,)))
    return found


def _count(given: str) -> int:
    if not given.isdecimal() or not 1 <= int(given) <= _MOST_RUNS:
        raise argparse.ArgumentTypeError(f"a number from 1 to {_MOST_RUNS}, not {given!r}")
    return int(given)


def _files(paths: Sequence[str]) -> list[str]:
    """The scenario files that `paths` name or contain, each once. Raises `UsageError`."""
    by_path: dict[str, str] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = list(_inside(path))
            if not inside:
                raise UsageError(f"there is no scenario file in {path}", f"their names end in {_SUFFIX}")
        elif os.path.exists(path) and not path.endswith(_SUFFIX):
            raise UsageError(f"{path} is not a scenario file", f"their names end in {_SUFFIX}")
        else:
            inside = [path]
        for file in inside:
            by_path.setdefault(os.path.realpath(file), file)
    return list(by_path.values())


def _read(paths: Sequence[str]) -> Iterator[str]:
    """The paths of the scenario files, of their topologies and of the files that they read. Raises `UsageError`."""
    from vsc.scenario import ScenarioError, paths_read

    scenarios = _files(paths)
    yield from scenarios
    for path, text in read_texts(scenarios)[0].items():
        with suppress(ScenarioError):  # the run reports it
            topology, files = paths_read(path, text)
            yield from with_included([str(topology)])
            yield from map(str, files)


def _inside(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(parent, name) for name in sorted(names) if name.endswith(_SUFFIX))


def _load(
    texts: Mapping[str, str], given: Mapping[str, str], allowed: tuple[str, ...], silent: Collection[str]
) -> tuple[list[ScenarioFile], int]:
    """The files, and the exit status. If a file cannot be used, all problems are reported, but for warnings that are
    `silent`, and nothing is run."""
    from vsc.scenario import RefusedTopology, ScenarioError, load

    files, status = [], 0
    told: set[str] = set()
    for path, text in texts.items():
        try:
            files.append(load(path, text, given, allowed))
        except ScenarioError as error:
            refused = error.topology if isinstance(error, RefusedTopology) else None
            _tell(error, refused in told, silent)
            if refused is not None:
                told.add(refused)
            status = max(status, 2 if refused is None else 1)
    return files, status


def _whole(path: Path, given: Mapping[str, str]) -> str:
    """The text of a topology with those of the files that it includes."""
    from vsc.compiler.driver import check_source

    return check_source(path.read_text(encoding="utf-8"), str(path), given)[0].text


def _tell(error: ScenarioError, shown: bool, silent: Collection[str]) -> None:
    from vsc.scenario import RefusedTopology

    if isinstance(error, RefusedTopology) and error.error.source is not None and not shown:
        tell_findings([one for one in error.error.diagnostics if one.code not in silent], error.error.source)
    tell(Problem(f"{error.path}:{error.line}:{error.column}: {error.message}", error.help))
