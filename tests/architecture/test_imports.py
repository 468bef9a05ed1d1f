"""Import rules that import-linter's contracts cannot say: one door for each library, and a plan of plain Python.

The layers themselves are contracts in ``pyproject.toml``; here they are only checked for being seen at all.
"""

from __future__ import annotations

import sys

import grimp
import pytest

DOORS = {
    "lark": ("vsc.grammar.build", "vsc.grammar.build_forms"),
    "networkx": ("vsc.compiler.topology",),
    "rocksdict": ("vsc.runtime.state",),
    "pyspark": ("vsc.runtime.spark", "vsc.notebook", "vsc.api"),  # vsc.api: for its types alone
    "pandas": ("vsc.runtime.spark",),
    "pyarrow": ("vsc.runtime", "vsc.testing", "vsc.inspect"),
    "numpy": ("vsc.runtime", "vsc.testing", "vsc.inspect"),
    "yaml": ("vsc.scenario",),
    "confluent_kafka": ("vsc.runtime.spark.connectors",),
    "fastavro": ("vsc.runtime.spark.connectors",),
    "prometheus_client": ("vsc.runtime.spark",),
    "IPython": ("vsc.notebook",),
    "watchfiles": ("vsc.cli.watch",),
    "pygments": ("vsc.highlight",),
    "pygls": ("vsc.lsp.server",),
    "lsprotocol": ("vsc.lsp",),
    "rich": ("vsc.cli", "vsc.runtime.spark"),
}
"""Who may import a library: these modules, what is in them, and modules beside them whose name starts with theirs."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("vsc", include_external_packages=True, cache_dir=None)


def test_modules_behind_the_links_are_seen(graph: grimp.ImportGraph) -> None:
    assert {"vsc.compiler.source", "vsc.grammar", "vsc.runtime.state", "vsc.plan.nodes"} <= graph.modules
    assert not {name for name in graph.modules if name.split(".")[0] in {"compiler", "grammar", "runtime"}}


@pytest.mark.parametrize("library", sorted(DOORS))
def test_a_library_has_its_door(graph: grimp.ImportGraph, library: str) -> None:
    if library not in graph.modules:
        pytest.skip(f"nothing imports {library}")
    importers = graph.find_modules_that_directly_import(library)
    assert [name for name in sorted(importers) if not name.startswith(DOORS[library])] == []


def test_the_plan_needs_only_the_standard_library(graph: grimp.ImportGraph) -> None:
    inside, outside = _imports(graph, "vsc.plan")
    assert outside == set()
    assert {name for name in inside if not name.startswith("vsc.plan")} == set()


def test_the_compiler_knows_only_its_libraries(graph: grimp.ImportGraph) -> None:
    assert _imports(graph, "vsc.compiler")[1] == {"networkx"}


def test_the_package_itself_imports_nothing(graph: grimp.ImportGraph) -> None:
    assert graph.find_modules_directly_imported_by("vsc") == {"importlib"}  # for the names that it loads when asked


def _imports(graph: grimp.ImportGraph, package: str) -> tuple[set[str], set[str]]:
    """What the modules of `package` import: from vsc, and from neither vsc nor the standard library."""
    modules = {package} | graph.find_descendants(package)
    imported = {name for module in modules for name in graph.find_modules_directly_imported_by(module)}
    inside = {name for name in imported if name.split(".")[0] == "vsc"}
    return inside, imported - inside - sys.stdlib_module_names


def test_the_oracle_shares_no_code_with_what_it_judges() -> None:
    graph = grimp.build_graph("vsc", "tests", cache_dir=None)
    oracle = "tests.oracle.records"

    def reached(package: str) -> set[tuple[str, ...]]:
        chains: set[tuple[str, ...]] = graph.find_shortest_chains(importer=oracle, imported=package, as_packages=True)
        return chains

    assert reached("vsc.runtime.expressions")  # its modules are seen
    assert reached("vsc.runtime.operators") == set()
    assert reached("vsc.runtime.state") == set()
