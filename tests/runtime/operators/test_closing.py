"""Windows that one step closes go in portions, and nothing else shows it."""

from __future__ import annotations

import pytest

from tests.oracle.epochs import EpochRow
from tests.random_topologies.partitions import Case, Run
from vsc.compiler import compile_topology
from vsc.runtime.operators import closing, later_stage
from vsc.runtime.operators.closing import Closing
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.state.kv import MemoryKV

SOURCE = "stream s (k string, n bigint, at bigint) from memory () key k timestamp at;\n"
WINDOWS = (
    "table w = aggregate s group by k window tumbling (size = 5 ms) emit final select collect_list(10 % n) as n;\n"
)
BEHIND = """\
stream ws = to_stream w;
stream moved = rekey ws by k as name;
table again = aggregate moved group by name window hopping (size = 20 ms, advance = 10 ms) emit final
select count(*) as n;
sink w to memory ();
sink again to memory ();
sink dropped to memory ();
"""


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The windows close two at a time; the names of nodes, once for each portion."""
    seen: list[str] = []
    closed = LaterStage._closed

    def noted(self: LaterStage, name: str, *rest: object) -> object:
        seen.append(name)
        return closed(self, name, *rest)  # type: ignore[arg-type]

    for module in (closing, later_stage):
        monkeypatch.setattr(module, "AT_ONCE", 2)
    monkeypatch.setattr(LaterStage, "_closed", noted)
    return seen


@pytest.mark.parametrize("drain", [False, True])
def test_portions_do_not_show_in_results_counters_or_state(portions: list[str], drain: bool) -> None:
    keys = "abcdefg"  # the only row of the first one's first window fails: 10 % 0
    given = [(k, n, 1) for n, k in enumerate(keys)] + [(k, 3, 6) for k in keys] + [("z", 1, 12)] * (not drain)
    rows = [EpochRow("s", "", place, {"k": k, "n": n, "at": at}, at) for place, (k, n, at) in enumerate(given)]
    epochs = [rows[:7], rows[7:14], rows[14:]]
    case = Case(SOURCE + WINDOWS + BEHIND, epochs, [1] * 3, [False, True, False], [False, False, drain])
    assert case.difference() == ""
    portions.clear()
    found = Run(case).records["w"]
    assert [key[:4] for key, _, _ in found] == [f"('{k}'" for k in keys[1:] + keys]
    assert portions.count("w") == 5


@pytest.mark.parametrize(
    ("behind", "portions_of"),
    [
        ("", "w"),
        ("stream b = to_stream w; stream c = map b select n; sink c to memory ();", "w"),
        ("table c = filter w where size(n) > 1 materialize; sink c to memory ();", None),
        ("table c = suppress w until time limit 5 ms; sink c to memory ();", None),
        ("stream b = to_stream w; table c = to_table b; sink c to memory ();", None),
        ("table c = join w with w as again select w.n; sink c to memory ();", None),
        ("table c = aggregate w group by size(n) as m select count(*) as m2; sink c to memory ();", None),
    ],
)
def test_windows_that_something_in_their_stage_knows_close_at_once(behind: str, portions_of: str | None) -> None:
    plan = compile_topology(f"{SOURCE}{WINDOWS}{behind}sink w to memory ();", path="closing.vdsl")
    (stage,) = (stage for stage in plan.stages[1:] if "w" in stage.nodes)
    found = Closing.of(plan, stage, MemoryKV())
    assert (None if found is None else found.name) == portions_of
