"""``vsc compile``: writes a topology as its plan, or in another form."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from vsc.cli.common import (
    STDIN,
    add_allow,
    add_variables,
    allowed_codes,
    print_payload,
    read_stdin,
    read_text,
    variables,
    warn_unknown,
    write_file,
)
from vsc.cli.errors import UsageError
from vsc.cli.on_spark import SparkOptions, add_spark, check_java, need_packages, refusal
from vsc.cli.problems import tell_findings
from vsc.compiler.files import holds_plan

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan

__all__ = ["add_arguments", "execute"]

_PICTURES = ("mermaid", "dot", "svg")
_FORMS = ("plan", "topology", "graph", *_PICTURES, "lineage", "spark")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a topology (.vdsl), or - for standard input; a plan (.json), for another form",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file instead of standard output")
    parser.add_argument(
        "--emit",
        choices=_FORMS,
        default="plan",
        help="plan (default): JSON for vsc run; topology: nodes, keys, types and versioned status, to read; graph: the "
        "same as JSON; lineage: OpenLineage's event of the job; spark: Spark's own plan (starts Spark); the others are "
        "pictures",
    )
    parser.add_argument(
        "--physical", action="store_true", help="draw the plan as it runs: its stages, repartitions and added nodes"
    )
    add_variables(parser)
    add_allow(parser)
    add_spark(parser)


def execute(args: argparse.Namespace) -> int:
    """Compiles the file. Returns 1 if it has errors or Spark refuses it, else 0."""
    given, silent, options = variables(args), allowed_codes(args), SparkOptions.of(args)
    if args.emit != "spark" and options.are_given:
        raise UsageError("--master, --conf and --packages are for --emit spark", "leave them out")
    if args.physical and args.emit not in _PICTURES:
        raise UsageError("--physical is for pictures", f"add --emit {_PICTURES[-1]}, or leave it out")
    plan = _plan(args.file, given, silent)
    if plan is None:
        return 1
    from vsc.compiler.emit import emit

    if args.emit == "spark":
        payload = _spark(options, plan, given)
    elif args.emit == "lineage":
        payload = _lineage(plan, given)
    else:
        payload = emit(plan, args.emit, args.physical)
    if args.output is None:
        print_payload(payload)
    else:
        write_file(args.output, payload)
    return 0


def _plan(file: str, given: Mapping[str, str], silent: Collection[str]) -> Plan | None:
    """The plan that the file holds, or that of its topology; None, with the findings reported, if that has errors."""
    path, text = (STDIN, read_stdin()) if file == "-" else (file, read_text(file))
    if holds_plan(path, text):
        from vsc.plan import PlanError, load

        warn_unknown(given, [text])
        try:
            return load(text)
        except PlanError as error:
            raise UsageError(f"{path} is not a plan of this vsc: {error}", "create it with `vsc compile`") from error
    from vsc.compiler.driver import compile_source

    result = compile_source(text, path, given)
    warn_unknown(given, [result.source.text])
    if found := [one for one in result.diagnostics if one.code not in silent]:
        tell_findings(found, result.source)
    return result.plan


def _lineage(plan: Plan, given: Mapping[str, str]) -> str:
    from vsc.lineage.events import job_event
    from vsc.lineage.job import given_namespace, job_of

    job = job_of(plan, given_namespace(), {**os.environ, **given})
    return json.dumps(job_event(job), indent=2, ensure_ascii=False) + "\n"


def _spark(options: SparkOptions, plan: Plan, given: Mapping[str, str]) -> str:
    need_packages("vsc compile --emit spark")
    from vsc.runtime.errors import VscRuntimeError
    from vsc.runtime.spark.query.preflight import check

    try:
        check(plan, given, "available-now", default_local=options.default_is_local)
    except VscRuntimeError as error:
        raise refusal(error) from error
    check_java()
    from vsc.runtime.spark.query.explain import spark_plans

    return options.run("vsc compile", options.for_plan(plan), lambda spark: spark_plans(plan, spark, given))
