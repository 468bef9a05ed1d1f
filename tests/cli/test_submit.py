"""What commands take as spark-submit does: what Spark is given, and what is refused. No Spark."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from vsc.cli import main
from vsc.cli.properties import properties

TEXT = "stream s (value bigint, at timestamp) from rate (rows_per_second = 1) timestamp at; sink s to noop ();"
STANDALONE = "spark://h:7077"
NOT_FOR_USERS = {"--version", "--driver-default-class-path", "--usage-error"}
"""That of vsc is `vsc --version`; the others only Spark itself gives."""


class Launch:
    """What the last session was to be started with."""

    master: str
    conf: dict[str, str]
    packages: Sequence[str]
    arguments: Sequence[str]
    from_files: dict[str, str]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    seen = Launch()

    @contextmanager
    def launched(
        name: str, master: str, conf: dict[str, str], packages: Any, log: Any, interrupts: Any,
        arguments: Sequence[str], from_files: dict[str, str],
    ) -> Iterator[None]:  # fmt: skip
        seen.master, seen.conf, seen.packages = master, conf, packages
        seen.arguments, seen.from_files = arguments, from_files
        yield None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setattr("vsc.runtime.spark.query.launch.launched", launched)
    monkeypatch.setattr("vsc.runtime.spark.query.run.run", lambda *_: None)
    monkeypatch.setattr("vsc.cli.machine.java_problem", lambda: None)
    Path("t.vdsl").write_text(TEXT)
    for name in ("a.jar", "b.jar", "a.py", "a.txt", "env.tar.gz", "keys"):
        Path(name).touch()
    return seen


def run(*options: str) -> int:
    try:
        return main(["run", "t.vdsl", "--checkpoint", "ck", *options])
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("options", "master", "conf"),
    [
        ("--name n --jars a.jar,b.jar --py-files a.py --files *.txt,hdfs://h/x --archives env.tar.gz#env", "local[*]",
         {"spark.app.name": "n", "spark.jars": "a.jar,b.jar", "spark.submit.pyFiles": "a.py",
          "spark.files": "*.txt,hdfs://h/x", "spark.archives": "env.tar.gz#env"}),
        ("--exclude-packages a:b,c:d --repositories https://r/m", "local[*]",
         {"spark.jars.excludes": "a:b,c:d", "spark.jars.repositories": "https://r/m"}),
        ("--driver-memory 2g --driver-class-path x:y --driver-library-path z --driver-java-options -Da=b", "local[*]",
         {"spark.driver.memory": "2g", "spark.driver.extraClassPath": "x:y", "spark.driver.extraLibraryPath": "z",
          "spark.driver.extraJavaOptions": "-Da=b"}),
        ("--driver-java-options=-Da=b --deploy-mode client", "local[*]",
         {"spark.driver.extraJavaOptions": "-Da=b", "spark.submit.deployMode": "client"}),
        ("--executor-memory 4g --executor-cores 2 --total-executor-cores 8", STANDALONE,
         {"spark.executor.memory": "4g", "spark.executor.cores": "2", "spark.cores.max": "8"}),
        ("--num-executors 3 --executor-memory 512m --queue q --principal p@R --keytab keys", "yarn",
         {"spark.executor.instances": "3", "spark.executor.memory": "512m", "spark.yarn.queue": "q",
          "spark.kerberos.principal": "p@R", "spark.kerberos.keytab": "keys"}),
        ("--executor-cores 1", "local-cluster[2,1,1024]", {"spark.executor.cores": "1"}),
        ("--executor-memory 4g --conf spark.executor.memory=4g --num-executors 2", "k8s://h:1",
         {"spark.executor.memory": "4g", "spark.executor.instances": "2"}),
    ],
)  # fmt: skip
def test_each_option_is_the_setting_that_spark_submit_makes(
    options: str, master: str, conf: dict[str, str], launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--master", master, *options.split()) == 0
    assert capsys.readouterr().err == ""
    assert (launch.master, launch.conf, launch.arguments, launch.from_files) == (master, conf, (), {})


@pytest.mark.parametrize(
    ("options", "message", "help"),
    [
        ("--master yarn --executor-memory 4x", "--executor-memory: '4x' is not an amount of memory",
         "write it with a unit, like 4g or 512m"),
        ("--driver-memory 4gb", "--driver-memory: '4gb' is not an amount of memory",
         "write it as Java does, like 4g or 512m"),
        ("--driver-java-options -Xmx4g", "--driver-java-options: Spark takes no -Xmx there",
         "set the heap with --driver-memory"),
        ("--master yarn --num-executors 0", "--num-executors: '0' is not a count", "write a whole number from 1 on"),
        ("--jars a.jar,gone.jar", "--jars: there is no file gone.jar",
         "correct the path; in a list, commas separate names"),
        ("--files a.txt,", "--files: a name is empty", "separate names by single commas"),
        ("--py-files a.txt", "--py-files: 'a.txt' is not Python code to import",
         "give a .py, .zip, .egg or .jar; --files takes any file"),
        ("--repositories central", "--repositories: 'central' is not an address",
         "write it like https://repository.example/maven"),
        ("--exclude-packages a", "--exclude-packages: 'a' is not an artifact", "write group:artifact"),
        ("--executor-memory 4g", "--executor-memory has no effect with --master local[*]",
         "tasks run in the driver there: use --driver-memory, and local[N] for N cores"),
        (f"--master {STANDALONE} --num-executors 2", f"--num-executors has no effect with --master {STANDALONE}",
         "bound them with --total-executor-cores and --executor-cores (local: local[N])"),
        ("--master yarn --total-executor-cores 2", "--total-executor-cores has no effect with --master yarn",
         "give --num-executors and --executor-cores (local: local[N])"),
        ("--queue q", "--queue has no effect with --master local[*]", "leave it out: only YARN has queues"),
        ("--driver-cores 2", "--driver-cores has no effect: the driver runs here", "leave it out"),
        ("--principal p", "Spark logs in with a principal and its keytab: --keytab is missing", "add --keytab"),
        ("--keytab keys", "Spark logs in with a principal and its keytab: --principal is missing", "add --principal"),
        (f"--master {STANDALONE} --principal p --keytab keys",
         f"--principal has no effect with --master {STANDALONE}",
         "Spark logs in on YARN and Kubernetes only: run kinit before"),
        ("--principal p --keytab keys --proxy-user u", "--proxy-user does not go with --principal",
         "leave one of them out"),
        ("--driver-memory 2g --conf spark.driver.memory=1g",
         "--driver-memory and --conf spark.driver.memory disagree", "leave one of them out"),
        ("--packages a:b:1 --conf spark.jars.packages=c:d:1", "--packages and --conf spark.jars.packages disagree",
         "leave one of them out"),
        ("--master yarn --conf spark.master=local", "--master and --conf spark.master disagree",
         "leave one of them out"),
        ("--load-spark-defaults", "--load-spark-defaults is for --properties-file",
         "leave it out: without one, Spark reads the defaults"),
        ("--class a.B", "--class: a topology has no class to start", "leave it out; --jars adds jars"),
        ("--supervise", "--supervise: Spark supervises drivers of Java only, in cluster mode on a standalone cluster",
         "have systemd or Kubernetes restart the same command: it goes on from its checkpoint"),
        ("--remote sc://h", "--remote: Spark Connect is not supported", "run on the driver, with --master"),
        ("--deploy-mode cluster", "--master local[*] is not a cluster that could run the driver",
         "leave --deploy-mode out"),
        (f"--master {STANDALONE} --conf spark.submit.deployMode=cluster",
         f"Spark runs no Python driver in cluster mode with --master {STANDALONE}",
         "leave --deploy-mode out, and start vsc run on a machine beside the cluster"),
        ("--deploy-mode clustre", "vsc run: argument --deploy-mode: invalid choice: 'clustre' "
         "(choose from 'client', 'cluster')", "vsc run --help shows what it takes"),
        ("--conf spark.submit.deployMode=x", "spark.submit.deployMode=x is not a mode", "write client or cluster"),
        ("--properties-file gone.conf", "there is no file gone.conf", None),
    ],
)  # fmt: skip
def test_what_spark_would_ignore_or_cannot_do_is_refused(
    options: str, message: str, help: str | None, launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options.split()) == 2
    said = capsys.readouterr().err
    assert said == f"error: {message}\n" + (f" = help: {help}\n" if help else "")
    assert not hasattr(launch, "conf")


def test_an_option_comes_before_a_setting_before_the_file_before_the_defaults(launch: Launch) -> None:
    Path("conf").mkdir()
    Path("conf/spark-defaults.conf").write_text("spark.master local[3]\nspark.a 1\nspark.b 1\nspark.app.name 1\n")
    Path("s.conf").write_text("spark.a 2\nspark.b 2\nspark.c 2\nspark.app.name 2\nspark.driver.memory 2g\n")
    assert run("--conf", "spark.d=3") == 0
    assert launch.master == "local[3]"
    assert launch.conf == {"spark.a": "1", "spark.b": "1", "spark.app.name": "1", "spark.d": "3"}
    assert launch.from_files == {"spark.a": "1", "spark.b": "1", "spark.app.name": "1"}
    given = ["--properties-file", "s.conf", "--conf", "spark.c=3", "--conf", "spark.b=3", "--name", "4"]
    assert run(*given) == 0
    assert launch.master == "local[*]"
    from_file = {"spark.a": "2", "spark.driver.memory": "2g"}
    assert launch.conf == {**from_file, "spark.b": "3", "spark.c": "3", "spark.app.name": "4"}
    assert (launch.from_files, launch.arguments) == (from_file, ("--properties-file", "s.conf"))
    Path("conf/spark-defaults.conf").write_text("spark.master local[3]\nspark.a 1\nspark.f 1\n")
    assert run(*given, "--load-spark-defaults", "--master", "local[1]", "--proxy-user", "u") == 0
    assert launch.master == "local[1]"
    assert launch.conf == {**from_file, "spark.f": "1", "spark.b": "3", "spark.c": "3", "spark.app.name": "4"}
    assert launch.from_files == {**from_file, "spark.f": "1"}
    assert launch.arguments == ("--properties-file", "s.conf", "--load-spark-defaults", "--proxy-user", "u")


def test_packages_take_the_place_of_those_in_a_file_beside_those_of_connectors(launch: Launch) -> None:
    Path("s.conf").write_text("spark.jars.packages c:d:1\n")
    Path("t.vdsl").write_text(TEXT.replace("noop ()", "delta (path = 'd', create = true)"))
    given = ["--properties-file", "s.conf"]
    assert run(*given) == 0
    kept, own = launch.conf["spark.jars.packages"].split(",")
    assert (kept, launch.packages) == ("c:d:1", ())
    assert run(*given, "--packages", "a:b:1") == 0
    assert (launch.conf["spark.jars.packages"], launch.packages) == (own, ("a:b:1",))
    assert run("--packages", "a:b:1,e:f:1", "--conf", "spark.jars.packages=a:b:1, e:f:1") == 0
    assert (launch.conf["spark.jars.packages"], launch.packages) == (own, ("a:b:1", "e:f:1"))


@pytest.mark.parametrize("command", [["upgrade", "t.vdsl", "--from", "s3a://b/old"], ["store", "list"]])
def test_other_commands_on_checkpoints_take_them_too(
    launch: Launch, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vsc.cli.store._look", lambda *_: 0)
    monkeypatch.setattr("vsc.runtime.spark.upgrade.upgrade", lambda *_: None)
    Path("s.conf").write_text("spark.hadoop.fs.s3a.secret.key hush\n")
    given = ["--jars", "a.jar", "--properties-file", "s.conf", "--master", "local[1]"]
    assert main([*command, "--checkpoint", "s3a://b/ck", *given]) == 0
    assert (launch.master, launch.conf["spark.jars"]) == ("local[1]", "a.jar")
    assert launch.from_files == {"spark.hadoop.fs.s3a.secret.key": "hush"}
    assert launch.arguments == ("--properties-file", "s.conf")


def test_what_a_file_says_wrong_has_its_line(launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.conf").write_text("# sizes\nspark.driver.memory 4x\n")
    assert run("--properties-file", "s.conf") == 2
    assert capsys.readouterr().err == (
        "error: s.conf:2: spark.driver.memory: '4x' is not an amount of memory\n = help: write it like 4g or 512m\n"
    )
    Path("s.conf").write_text("\nhive.x = 1\n")
    assert run("--properties-file", "s.conf") == 0
    assert capsys.readouterr().err == (
        "warning: s.conf:2: hive.x has no effect\n"
        " = help: Spark's settings begin with `spark.`; Hadoop's are written `spark.hadoop.hive.x`\n"
    )


def test_verbose_says_where_each_setting_comes_from(launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.conf").write_text("spark.hadoop.fs.s3a.secret.key hush\nspark.a 1\n")
    assert run("--properties-file", "s.conf", "-v", "--name", "n", "--conf", "spark.b=2") == 0
    assert capsys.readouterr().err.splitlines() == [
        "master: local[*]", "spark.a: 1 (s.conf)", "spark.app.name: n (--name)", "spark.b: 2 (--conf)",
        "spark.hadoop.fs.s3a.secret.key: ... (s.conf)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spark.a=1\nspark.b : 2\nspark.c 3\nspark.d\t=\t4 5 \n", {"a": "1", "b": "2", "c": "3", "d": "4 5"}),
        ("# spark.a=1\n  ! spark.b=2\n\nspark.c\nspark.d=", {"c": "", "d": ""}),
        ("spark.a=1,\\\n   2,\\\n3\nspark.b=x\\\\\nspark.c=4\\", {"a": "1,2,3", "b": "x\\", "c": "4"}),
        (r"spark.a=\u00e9\t|\:\q\=" + "\nspark.b=\\n x \\r\n", {"a": "é\t|:q=", "b": "\n x \r"}),
        (r"spark.\=\ \:x=1==2" + "\r\nspark.b=1\rspark.b=2\n", {"= :x": "1==2", "b": "2"}),
    ],
)
def test_a_file_of_settings_is_read_as_java_does(text: str, found: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "s.conf").write_text(text, newline="")
    read = properties(str(tmp_path / "s.conf"))
    assert {name.removeprefix("spark."): value for name, (value, _) in read.items()} == found


def test_every_option_of_spark_submit_is_taken_or_refused_with_a_reason(
    launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    jar = next(Path(pyspark.__file__).with_name("jars").glob("spark-launcher_*.jar"))
    with zipfile.ZipFile(jar) as inside:
        read = inside.read("org/apache/spark/launcher/SparkSubmitOptionParser.class")
    theirs = {name.decode() for name in re.findall(rb"--[a-z-]+[a-z]", read)} - NOT_FOR_USERS
    assert len(theirs) > 25
    for option in theirs:
        run(option, "x")
        assert "unrecognized arguments: --" not in capsys.readouterr().err, option


def test_the_printed_command_has_every_setting_and_the_main_file_every_argument(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    Path("s.conf").write_text("spark.a 1\n")
    Path("t.vdsl").write_text(TEXT.replace("= 1", "= ${n}").replace("noop ()", "files (path = '${out}', format='csv')"))
    monkeypatch.setenv("out", str(tmp_path / "out"))
    given = (
        "--master spark://h:1 --print-submit job --var n=5 --partitions 2 --trigger 5s --max-idle 1s --on-error drop "
        "--max-bad 2% --name n --files a.txt --py-files a.py --packages a:b:1 --executor-memory 4g --conf spark.c=3 "
        "--properties-file s.conf --proxy-user u -v --lineage http://h:1"
    )
    assert run(*given.split()) == 0
    out, err = capsys.readouterr()
    folder = tmp_path / "job"
    assert shlex.split(out.replace("\\\n", "")) == [
        "env", "LC_ALL=C.UTF-8", "spark-submit", "--master", "spark://h:1",
        "--conf", "spark.executorEnv.LC_ALL=C.UTF-8", "--conf", f"spark.pyspark.python={sys.executable}",
        "--conf", f"spark.pyspark.driver.python={sys.executable}", "--deploy-mode", "client", "--name", "n",
        "--conf", "spark.c=3", "--py-files", f"a.py,{folder}/vsc.zip", "--files", f"a.txt,{folder}/plan.json",
        "--executor-memory", "4g", "--packages", "a:b:1", "--properties-file", "s.conf", "--proxy-user", "u",
        "--verbose", f"{folder}/main.py",
    ]  # fmt: skip
    assert err == "the driver needs these variables in its environment: out\n"
    [call] = [
        node for node in ast.walk(ast.parse((folder / "main.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "vsc.start"
    ]  # fmt: skip
    assert {str(one.arg): ast.literal_eval(one.value) for one in call.keywords} == {
        "checkpoint": "ck", "variables": {"n": "5"}, "partitions": 2, "trigger": "5s", "max_idle": "1s",
        "on_bad_row": "drop", "on_error": "drop", "max_bad": "2%", "lineage": "http://h:1",
    }  # fmt: skip
    assert not hasattr(launch, "conf")
    assert run(*given.split()) == 0  # once more, into the folder that it made


def test_cluster_mode_is_for_the_printed_command(launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--master", "yarn", "--deploy-mode", "cluster", "--driver-cores", "2"]
    assert run(*given) == 2
    assert "vsc run --print-submit DIR prints the spark-submit command that runs it there" in capsys.readouterr().err
    assert run(*given, "--print-submit", "job") == 0
    words = shlex.split(capsys.readouterr().out.replace("\\\n", ""))
    assert words[:13] == [
        "env", "LC_ALL=C.UTF-8", "spark-submit", *given[:2], "--conf", "spark.executorEnv.LC_ALL=C.UTF-8", "--conf",
        "spark.yarn.appMasterEnv.LC_ALL=C.UTF-8", *given[2:4], "--name", "vsc t",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("job --drain", "--drain is not for --print-submit: "),
        ("job --metrics prometheus:1", "--metrics is not for --print-submit: "),
        ("conf", "--print-submit conf: the folder holds other files"),
        ("a.txt", "--print-submit a.txt cannot be written: File exists"),
        ("job --conf spark.x.password=hush", "spark.x.password is a secret, which the command would show"),
        ("job --conf spark.u=postgresql://me:hush@h/d", "spark.u is a secret, which the command would show"),
        ("job --var password=hush", "--var password is a secret, which the main file would hold"),
    ],
)
def test_what_cannot_be_printed_is_refused(
    options: str, message: str, launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("conf").mkdir()
    Path("conf/main.py").write_text("print('mine')")
    assert run("--print-submit", *options.split()) == 2
    said = capsys.readouterr()
    assert (said.out, "hush" in said.err) == ("", False)
    assert f"error: {message}" in said.err
    assert not Path("job").exists() and Path("conf/main.py").read_text() == "print('mine')"


@pytest.mark.parametrize(
    "options",
    [
        "url = 'jdbc:postgresql://h/d', 'password' = '${pw}'",
        "url = 'jdbc:postgresql://h/d?user=u&password=${pw}'",
        "url = 'jdbc:postgresql://h/d', 'sslpassword' = 'a${pw}b'",
    ],
)
def test_a_variable_is_secret_if_a_secret_option_uses_it(
    options: str, launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = f"table n = aggregate s group by value select count(*) as n; sink n to jdbc ({options}, table = 't');"
    Path("t.vdsl").write_text(TEXT.replace("sink s to noop ();", sink))
    assert run("--print-submit", "job", "--var", "pw=hush") == 2
    said = capsys.readouterr()
    assert (said.out, "hush" in said.err, Path("job").exists()) == ("", False, False)
    assert "--var pw is a secret (option '" in said.err
    assert "give it as the variable pw of the environment, here and where the driver runs" in said.err
