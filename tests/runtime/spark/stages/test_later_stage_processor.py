"""What Spark does with a stage on the driver. No Spark."""

from __future__ import annotations

import pickle
import subprocess
import sys

from vsc import compile as compile_text
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.spark.stages.later_stage import LaterStageTask
from vsc.runtime.spark.stages.later_stage_processor import LaterStageProcessor
from vsc.runtime.spark.state.local_folder import LocalFolders

TEXT = """
stream clicks (page string, at timestamp) from files (path = 'in', format = 'json') key page timestamp at;
table counts = aggregate clicks group by page select count(*) as n;
sink counts to files (path = 'out', format = 'json');
"""


def test_naming_the_state_variables_imports_nothing_that_tasks_need() -> None:
    task = LaterStageTask(compile_text(TEXT), 1, 4, RunOptions(), LocalFolders(None, "ck", "run"), frozenset())
    script = "import pickle, sys; pickle.load(sys.stdin.buffer); print(*sorted(n for n in sys.modules if 'vsc' in n))"
    pickled = pickle.dumps(LaterStageProcessor(task))
    loaded = subprocess.run([sys.executable, "-c", script], input=pickled, capture_output=True, check=True).stdout
    own = [name for name in loaded.decode().split() if name.partition(".")[0] == "vsc"]
    session, stages = "vsc.runtime.spark.session", "vsc.runtime.spark.stages"
    needed = [session, f"{session}.loaded", stages, f"{stages}.later_stage_processor"]
    assert own == ["vsc", "vsc.extras", "vsc.runtime", "vsc.runtime.spark", *needed]
