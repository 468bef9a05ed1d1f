"""Protobuf schemas: from text to descriptors, by protoc, with what they import; and from descriptors to messages.

A compiled schema is a FileDescriptorSet in Base64, whose last file is the schema itself. The workers need only that.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from vsc.extras import required, spec_of

__all__ = ["compiled", "file_of", "message_at", "messages_of"]

_MAIN = "vsc_schema.proto"
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}")
_SECONDS = 60


def compiled(text: str, imports: Mapping[str, str]) -> str:
    """A schema, with the texts of the files that it imports, by their names. ValueError says what is wrong with it.

    Google's well-known types need no text, nor do Confluent's, which its client has.
    """
    with required("Protobuf with a schema registry", "registry"):
        import grpc_tools
    own = Path(str(grpc_tools.__file__)).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        known = _known_types()
        for name, content in {**imports, _MAIN: text}.items():
            place = (root / "in" / name).resolve()
            if (file := _serialized(content)) is not None:
                file.name = name
                known.file.append(file)
                continue
            if root.resolve() not in place.parents:
                raise ValueError(f"it imports {name!r}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, encoding="utf-8")
        (root / "known").write_bytes(known.SerializeToString())
        command = [
            sys.executable, "-m", "grpc_tools.protoc", f"-I{root}/in", f"-I{own}", f"--descriptor_set_in={root}/known",
            "--include_imports", f"--descriptor_set_out={root}/out", _MAIN,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if done.returncode:
            found = [line for line in done.stderr.splitlines() if ".proto:" in line and "warning:" not in line]
            lines = [line.removeprefix(f"{root}/in/") for line in found if not line.startswith("W0")]
            raise ValueError("; ".join(lines[:3]).replace(f"{_MAIN}:", "line ") or "it is not a schema")
        return base64.b64encode((root / "out").read_bytes()).decode()


def _serialized(text: str) -> Any | None:
    """The descriptor that Confluent's client for Python registers instead of a text; None for a text."""
    if not _BASE64.fullmatch(text.strip()):
        return None
    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None


def _known_types() -> descriptor_pb2.FileDescriptorSet:
    """The types that a registry knows by itself, beside those of protoc."""
    from confluent_kafka.schema_registry.confluent import meta_pb2
    from confluent_kafka.schema_registry.confluent.type import decimal_pb2

    found = [meta_pb2.DESCRIPTOR, decimal_pb2.DESCRIPTOR]
    if spec_of("google.type") is not None:
        from google.type import date_pb2, timeofday_pb2

        found += [date_pb2.DESCRIPTOR, timeofday_pb2.DESCRIPTOR]
    files = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(file: Any) -> None:
        if file.name not in seen:
            seen.add(file.name)
            for needed in file.dependencies:
                add(needed)
            file.CopyToProto(files.file.add())

    for file in found:
        add(file)
    return files


@lru_cache(maxsize=256)
def file_of(schema: str) -> Any:
    """The descriptor of the file of a compiled schema."""
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)  # each stands behind those that it imports
    return pool.FindFileByName(files.file[-1].name)


def messages_of(schema: str) -> list[Any]:
    """The messages of a compiled schema that are in none, in the order of the file."""
    file = file_of(schema)
    return [file.message_types_by_name[one.name] for one in _in_order(file)]


def message_at(schema: str, indexes: tuple[int, ...]) -> Any | None:
    """The message at the indexes: among those of the file, then those inside of it; None if there is none."""
    found, inside = None, messages_of(schema)
    for index in indexes:
        if not 0 <= index < len(inside):
            return None
        found = inside[index]
        inside = list(found.nested_types)
    return found


def _in_order(file: Any) -> Any:
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return proto.message_type
