"""``python -m soak [--kills N] [--seed N] [--kinds K,...] [--subjects S,...]``: see `soak`; prints a report.

Exit status: 0 if every round ended like the undisturbed run; 1 if one did not, or not all kills fitted into the time;
130 or 143 after Ctrl-C or SIGTERM: everything that was started is then killed, and the report covers the rounds so far.
The files of a failed round are kept, and the report names them and the seed; with the same seed, the kills come at
about the same points again.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from soak.job import KINDS
from soak.rounds import Limit, Plan, Round, SoakError, soak
from soak.subjects import SUBJECTS

PHASES = ("starting", "computing", "writing sinks", "between epochs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the soak."""
    parser = argparse.ArgumentParser(prog="python -m soak", description="kill -9 at random points, and what is left")
    parser.add_argument("--kills", type=int, default=50, help="how many, over all topologies (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="of the input and of the kills (default: 1)")
    for option, known in (("--kinds", KINDS), ("--subjects", tuple(SUBJECTS))):
        parser.add_argument(option, type=_names(known), default=known, help=f"of {','.join(known)} (default: all)")
    parser.add_argument("--epochs", type=int, default=16, help="how many epochs the input is good for (default: 16)")
    parser.add_argument("--minutes", type=float, default=45, help="the soak ends after so many (default: 45)")
    given = parser.parse_args(arguments)
    plan = Plan(given.kills, given.seed, given.kinds, given.subjects, given.epochs, given.minutes)
    folder = Path(tempfile.mkdtemp(prefix="vsc-soak-"))
    started = time.monotonic()
    limit = Limit(started + plan.minutes * 60)
    signals: list[int] = []
    _stop_on_signals(limit, signals)
    try:
        rounds = soak(plan, folder, lambda line: print(line, flush=True), limit)
    except SoakError as error:
        print(f"{error}\nwhat is left is in {folder}")
        return 1
    good = report(plan, rounds, time.monotonic() - started, bool(signals))
    if any(found.faults for found in rounds) or not (good or signals):
        print(f"what is left is in {folder}; the seed is {plan.seed}")
    else:
        shutil.rmtree(folder)
    return 128 + signals[0] if signals else 0 if good else 1


def _stop_on_signals(limit: Limit, signals: list[int]) -> None:
    """The first Ctrl-C or SIGTERM stops the soak and is added to `signals`; the second one ends it at once."""

    def handler(number: int, frame: object) -> None:
        if signals:
            sys.exit(128 + number)  # everything that was started is killed on the way out
        signals.append(number)
        limit.stopped = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        unknown = [name for name in found if name not in known]
        if unknown or not found:
            raise argparse.ArgumentTypeError(f"give some of {', '.join(known)}, not {text!r}")
        return found

    return parse


def report(plan: Plan, rounds: Sequence[Round], seconds: float, interrupted: bool = False) -> bool:
    """Prints what happened; returns whether everything was done and went well."""
    kills = [kill for found in rounds for kill in found.kills]
    counts = Counter((kill.kind, kill.phase) for kill in kills)
    print(f"\n{'killed':12}" + "".join(f"{phase:>16}" for phase in PHASES))
    for kind in plan.kinds:
        print(f"{kind:12}" + "".join(f"{counts[kind, phase]:>16}" for phase in PHASES))
    wrong = [found for found in rounds if found.faults]
    verdict = f"{len(wrong)} of {len(rounds)} rounds DIFFER" if wrong else "every round that ended as undisturbed"
    print(
        f"\n{len(kills)} of {plan.kills} kills in {len(rounds)} rounds, {sum(r.lives for r in rounds)} lives, "
        f"{seconds / 60:.1f} minutes: {verdict}"
    )
    if interrupted:
        print("interrupted: of a round that has not ended nothing is known")
    elif not all(found.ended for found in rounds):
        print("the last round did not end in time: nothing is known of it")
    if len(kills) < plan.kills and not wrong and not interrupted:
        print(f"{plan.minutes:g} minutes did not suffice for all kills (--minutes, or --epochs for a smaller input)")
    for found in wrong:
        for fault in found.faults:
            print(f"  {found.subject} on {found.master}: {fault}")
    done = all(found.ended for found in rounds) and len(kills) >= plan.kills
    return done and not wrong and not interrupted


if __name__ == "__main__":
    sys.exit(main())
