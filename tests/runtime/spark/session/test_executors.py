"""What executors are asked, without any: what a task finds, and what the driver makes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark import SparkFiles

from vsc.plan.parts import OwnFunction
from vsc.plan.types import INT
from vsc.runtime.errors import (
    CheckpointError,
    ConfigurationError,
    FunctionError,
    SinkError,
    SourceError,
    VscRuntimeError,
)
from vsc.runtime.spark.session.executors import Executors
from vsc.runtime.spark.session.findings import Shared, not_run
from vsc.runtime.spark.session.on_executor import Answer, Asked, look, token_file

PACKAGES = ("numpy", "pandas", "pyarrow", "rocksdict", "protobuf")
NOT_SHARED = "give a path that the driver and all executors share"
CONTEXT = SimpleNamespace(master="spark://there:7077", defaultParallelism=4)


class Cluster(Executors):
    """Executors by name: what each answers, given what is asked."""

    def __init__(self, shared: Sequence[Shared], answers: Any, functions: Sequence[OwnFunction] = ()) -> None:
        spark: Any = SimpleNamespace(version="4.1.4", sparkContext=CONTEXT)
        super().__init__(spark, shared, PACKAGES, functions=functions)
        self.answers, self.asked = answers, 0

    def _there(self) -> frozenset[str]:
        return frozenset(self.answers)

    def _run(self, asked: Asked) -> list[Answer]:
        self.asked += 1
        return [answer(asked) for answer in self.answers.values() if not asked.forget]


def answering(host: str, sees: bool = True, **changed: Any) -> Any:
    """An executor; `sees`: it has the folders that the driver has."""

    def answer(asked: Asked) -> Answer:
        if sees:
            for folder in asked.folders:
                assert os.path.exists(token_file(folder, asked.token, "driver"))
                Path(token_file(folder, asked.token, host)).touch()
        found = Answer(
            host,
            "/spark",
            host,
            "python3",
            (None,) * len(asked.folders),
            (),
            ("",) * len(asked.packages),
            "4.1.4",
            None,
            1 << 40,
            (None,) * len(asked.servers),
            time.time(),
        )
        return found._replace(**changed)

    return answer


def refusal(shared: Sequence[Shared], **answers: Any) -> VscRuntimeError:
    with pytest.raises(VscRuntimeError) as found:
        Cluster(shared, answers).check()
    return found.value


def test_each_executor_is_asked_once(tmp_path: Path) -> None:
    cluster = Cluster([Shared("the checkpoint", str(tmp_path / "ck"), CheckpointError)], {"a": answering("a")})
    cluster.check()
    cluster.check()
    assert cluster.asked == 1
    cluster.answers["b"] = answering("b")
    cluster.check()
    assert cluster.asked == 2
    assert list(tmp_path.iterdir()) == []


def test_an_executor_that_ran_no_task_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster([], {"a": answering("a"), "busy": answering("a")})
    cluster.check()
    assert "1 of 2 executors did not run a task" in caplog.text
    cluster.answers["busy"] = answering("busy")
    cluster.check()
    asked = cluster.asked
    cluster.check()
    assert cluster.asked == asked


def test_what_an_executor_writes_has_to_arrive(tmp_path: Path) -> None:
    shared = [Shared("the sink of 's'", str(tmp_path), SinkError)]
    error = refusal(shared, a=answering("a"), b=answering("b", sees=False))
    assert isinstance(error, SinkError)
    assert error.message == (
        f"the sink of 's' ({tmp_path}) is not shared: what the executor on b (/spark) writes there is not seen by the "
        "driver"
    )
    assert error.help is not None and error.help.startswith(NOT_SHARED)
    assert list(tmp_path.iterdir()) == []


def test_what_the_driver_writes_has_to_arrive(tmp_path: Path) -> None:
    shared = [Shared("the checkpoint", str(tmp_path), CheckpointError)]
    error = refusal(shared, a=answering("a", folders=("does not see what the driver writes there",)))
    assert isinstance(error, CheckpointError)
    assert error.message.endswith("the executor on a (/spark) does not see what the driver writes there")


def test_files_of_sources_have_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("_hidden", "a.json", "b.json"):
        (tmp_path / "in" / name).write_text("{}")
    asked: list[Asked] = []

    def answer(question: Asked) -> Answer:
        asked.append(question)
        return answering("a")(question)._replace(files=(question.files[0][0],))  # type: ignore[no-any-return]

    error = refusal([Shared("the source 's'", str(tmp_path / "i*"), SourceError, read=True)], a=answer)
    assert isinstance(error, SourceError)
    assert asked[0].files == tuple((str(tmp_path / "in" / name), 2) for name in ("b.json", "a.json"))
    assert f"the executor on a (/spark) does not have {tmp_path}/in/b.json as the driver has it" in error.message


def test_packages_that_executors_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = ["lark<2,>=1.2", "pyarrow<27,>=18; extra == 'test'", "rocksdict<0.4; extra == 'test'",
            "numpy>=1; extra == 'test'", "versioned-streams[test]; extra == 'spark'"]  # fmt: skip
    monkeypatch.setattr("vsc.runtime.spark.session.packages.requires", lambda name: asks)
    error = refusal([], a=answering("a", versions=("99", None, "9.1", "0.4", None)))
    assert isinstance(error, ConfigurationError)
    assert error.message == (
        "the Python of the executor on a (/spark), python3, does not have pandas, protobuf and has a release that vsc "
        "cannot use of pyarrow 9.1 (<27,>=18), rocksdict 0.4 (<0.4)"
    )


def test_modules_of_functions_that_executors_lack() -> None:
    error = refusal([], a=answering("a", lacking=("scoring",)))
    assert isinstance(error, FunctionError)
    assert str(error) == (
        "[VSC925] the Python of the executor on a (/spark) does not have scoring, of the topology's functions\n"
        "  help: send what they are in with --py-files, or install it there"
    )
    asked: list[Asked] = []

    def answer(question: Asked) -> Answer:
        asked.append(question)
        return answering("a")(question)  # type: ignore[no-any-return]

    functions = [OwnFunction("f", (), INT, reference) for reference in ("m:f", "n.o:g", "m:h")]
    Cluster([], {"a": answer}, functions).check()
    assert asked[0].modules == ("m", "n.o")


def test_a_file_that_the_driver_itself_no_longer_has_is_not_missed(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    shared = [Shared("the source 's'", str(tmp_path), SourceError, read=True)]

    def moved(question: Asked) -> Answer:
        (tmp_path / "b.json").unlink(missing_ok=True)
        return answering("a")(question)._replace(files=(str(tmp_path / "b.json"),))  # type: ignore[no-any-return]

    Cluster(shared, {"a": moved}).check()

    def grown(question: Asked) -> Answer:
        (tmp_path / "a.json").write_text("{}{}")
        return answering("a")(question)._replace(files=(str(tmp_path / "a.json"),))  # type: ignore[no-any-return]

    Cluster(shared, {"a": grown}).check()


def test_another_spark_and_a_disk_that_cannot_be_written() -> None:
    error = refusal([], a=answering("a", spark="4.3.0"))
    assert error.message == "the executor on a (/spark) runs Spark 4.3.0, the driver Spark 4.1.4"
    Cluster([], {"a": answering("a", spark="4.1.0")}).check()
    error = refusal([], a=answering("a", local="there is no permission to write to /fast"))
    assert (error.code, error.message) == (
        "VSC903",
        "the executor on a (/spark) cannot keep state on its disk: there is no permission to write to /fast",
    )


@pytest.mark.parametrize(("ahead", "said"), [(60.0, "60 seconds ahead of"), (-60.0, "60 seconds behind"), (3.0, None)])
def test_clocks_that_differ_are_told(ahead: float, said: str | None, caplog: pytest.LogCaptureFixture) -> None:
    def answer(question: Asked) -> Answer:
        return answering("a")(question)._replace(clock=time.time() + ahead)  # type: ignore[no-any-return]

    cluster = Cluster([], {"a": answer, "busy": answer})  # so that it is asked several times
    cluster.check()
    told = [record.message for record in caplog.records if "clock" in record.message]
    expected = [] if said is None else [f"the clock of the executor on a (/spark) is {said} the driver's"]
    assert [text.partition(":")[0] for text in told] == expected


def test_an_executor_with_little_memory_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    short, enough = answering("a", memory=(512 << 20) - 1), answering("b", memory=512 << 20)
    cluster = Cluster([], {"a": short, "b": enough})  # two cores each
    cluster.check()
    cluster.answers["c"] = answering("c")
    cluster.check()
    (told,) = [record.message for record in caplog.records]
    assert told.startswith(
        "the executor on a (/spark) has 512 MiB of memory free for the Python workers of 2 cores, which take 512 MiB or"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "java.io.InvalidClassException: org.apache.spark.x.Y; local class",
            "another Spark than the driver: org.apache",
        ),
        ('java.io.IOException: Cannot run program "./env/bin/python": error=2', "there is no ./env/bin/python that"),
        (
            "Error from python worker:\n  a\n  no python3.11 on the PATH\nPYTHONPATH was:\n  /x\n",
            "no python3.11 on the PATH",
        ),
        ("x\n[PYTHON_VERSION_MISMATCH] Python in worker has 3.9, driver 3.11.\ny", "has 3.9, driver 3.11."),
        (
            "executor 0): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "worker.py", line 1, in main\n    process()\nOSError: [Errno 22] Invalid argument\n\n\tat org.x',
            "an executor cannot say what it has: OSError: [Errno 22] Invalid argument",
        ),
    ],
)
def test_no_python_or_another_one(text: str, message: str) -> None:
    error = not_run(text)
    assert error is not None and message in error.message
    assert not_run("something else") is None


def test_a_task_looks_at_folders_files_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkFiles, "getRootDirectory", classmethod(lambda cls: "/spark/0/."))
    monkeypatch.setattr("vsc.runtime.spark.session.on_executor._SECONDS", 0.1)
    monkeypatch.setattr("vsc.runtime.spark.session.on_executor.free_memory", lambda: 7 << 20)
    seen, unseen, file = tmp_path / "seen", tmp_path / "unseen", tmp_path / "file"
    for folder in (seen, unseen):
        folder.mkdir()
    Path(token_file(str(seen), "t", "driver")).touch()
    file.write_text("four")
    packages = (("pyarrow", "pyarrow"), ("none", "none.such"), ("none", "nonesuch"), ("unnamed", "json"))
    files = ((str(file), 4), (str(file), 5), ("/none", 1))
    asked = Asked("t", (str(seen), str(unseen)), files, packages, modules=("json.none", "nonesuch.a"))
    (answer,) = look(asked, iter(()))
    assert answer.folder == "/spark/0" and answer.name == f"the executor on {answer.host} (/spark/0)"
    assert answer.folders == (None, "does not see what the driver writes there")
    assert answer.files == (str(file), "/none")
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: False)
        (closed,) = look(asked, iter(()))
    assert closed.files == (str(file), str(file), "/none")
    assert answer.spark == pyspark.__version__ and answer.local is None and abs(answer.clock - time.time()) < 60
    assert answer.memory == 7 << 20 and answer.lacking == ("nonesuch.a",)
    (answer,) = look(asked._replace(local=str(file)), iter(()))
    assert answer.local == f"{file} is not a folder"
    assert answer.versions[0] and answer.versions[1:] == (None, None, "")
    assert sorted(path.name for path in seen.iterdir()) == sorted([".vsc-t-driver", f".vsc-t-{answer.own}"])
    assert list(look(asked._replace(forget=True), iter(()))) == []
    assert [path.name for path in seen.iterdir()] == [".vsc-t-driver"]


def test_what_a_killed_run_or_doctor_has_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    old, new, other = (tmp_path / f".vsc-{name}" for name in ("0123456789ab-driver", "0123456789cd-a", "notes-old"))
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (0, time.time() - 2 * 86_400))
    Cluster([Shared("the checkpoint", str(tmp_path), CheckpointError)], {"a": answering("a")}).check()
    assert {*tmp_path.iterdir()} == {new, other}
