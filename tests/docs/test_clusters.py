"""The manifests on the page about Kubernetes are whole, and name what there is: options of vsc, settings of Spark."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.docs.blocks import ROOT
from vsc.cli import whole_parser
from vsc.runtime.spark.base.object_stores import cloud_package

PAGE = (ROOT / "docs/clusters/kubernetes.md").read_text(encoding="utf-8")
MANIFESTS: dict[str, Any] = {
    found["kind"]: found for found in map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S))
}
DRIVER = MANIFESTS["Deployment"]["spec"]["template"]["spec"]


def test_the_driver_is_told_what_vsc_and_spark_know() -> None:
    (container,) = DRIVER["containers"]
    command, *words = container["args"]
    args = whole_parser().parse_args(words)
    assert (command, words[0]) == ("vsc", "run")
    assert args.checkpoint.startswith("s3a://")
    assert args.master.startswith("k8s://https://")
    variables = {name for word in words for name in re.findall(r"\$\((\w+)\)", word)}
    assert variables == {one["name"] for one in container["env"]}


def test_what_the_driver_mounts_is_there() -> None:
    (container,) = DRIVER["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in DRIVER["volumes"]}
    files = {
        name for names in re.findall(r"^kubectl create .*$", PAGE, re.M) for name in re.findall(r"=([\w.]+)", names)
    }
    used = {path for word in container["args"] for path in re.findall(r"(?:/job|/secrets)/([\w.]+)", word)}
    assert used <= files
    deployment = MANIFESTS["Deployment"]["spec"]
    assert deployment["selector"]["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert f"serviceaccount {DRIVER['serviceAccountName']}" in PAGE


def test_the_template_is_one_of_executors() -> None:
    spec = MANIFESTS["Pod"]["spec"]
    (container,) = spec["containers"]
    assert container["name"] == "spark-kubernetes-executor"
    (mount,), (volume,) = container["volumeMounts"], spec["volumes"]
    assert mount["name"] == volume["name"]
    assert volume["name"].startswith("spark-local-dir-")


def test_the_operators_application_runs_what_print_submit_writes() -> None:
    spec = MANIFESTS["SparkApplication"]["spec"]
    assert (spec["type"], spec["mode"], spec["mainApplicationFile"]) == ("Python", "cluster", "local:///job/main.py")
    assert spec["driver"]["serviceAccount"] == DRIVER["serviceAccountName"]
    assert f"pyspark=={spec['sparkVersion']}" in PAGE


def test_spark_has_these_settings() -> None:
    pyspark = pytest.importorskip("pyspark")
    jars = sorted(Path(pyspark.__file__).parent.glob("jars/spark-*_2.13-*.jar"))
    named = set(re.findall(r"\bspark\.kubernetes\.[\w.]*\w", PAGE))
    assert len(named) >= 3
    (kubernetes,) = (jar for jar in jars if jar.name.startswith("spark-kubernetes_"))
    with zipfile.ZipFile(kubernetes) as jar:
        known = b"".join(jar.read(name) for name in jar.namelist() if "/deploy/k8s/" in name)
    assert [name for name in named if name.encode() not in known] == []


def test_the_clients_of_object_stores_are_those_that_vsc_advises() -> None:
    page = (ROOT / "docs/clusters/object-stores.md").read_text(encoding="utf-8")
    for named, spark in (("4.0", "4.0"), ("4.1", "4.1"), ("4.2, 4.3", "4.3")):
        assert f"| {named} | `{cloud_package(spark)}` |" in page
    assert cloud_package("4.2") == cloud_package("4.3")
    assert f"--packages={cloud_package('4.1')}" in DRIVER["containers"][0]["args"]
