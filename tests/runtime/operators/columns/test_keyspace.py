"""Keys of a batch and their numbers."""

from __future__ import annotations

import pyarrow as pa

from vsc.plan.types import BIGINT
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.state.keys import KeyCodec


def test_a_key_has_one_number_whoever_asks_first_and_if_only_for_none() -> None:
    codec = KeyCodec([BIGINT])
    first, second = codec.encode([7]), codec.encode([8])
    for asked in ([], [first], [second, first]):
        space = KeySpace(codec)
        space.encoded(asked)
        numbers = space.columns([pa.array([7, 8, 7])], 3).tolist()
        assert [space.keys[number] for number in numbers] == [first, second, first]
        assert space.encoded([second, first]).tolist() == [numbers[1], numbers[0]]
        assert sorted(space.keys) == [first, second]
