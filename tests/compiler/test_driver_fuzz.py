"""Whatever is written, compiling it ends in a plan that can be dumped and shown, or in an error with a place."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from vsc.compiler.driver import compile_source
from vsc.compiler.emit import PICTURES, TEXTS, emit
from vsc.plan import dump, load

TESTS = Path(__file__).parents[1]
TOKEN = re.compile(r"\w+|'[^']*'|`[^`]*`|\s+|.", re.DOTALL)


def _texts() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(TESTS.glob("golden/*.vdsl"))]
    for path in sorted(TESTS.glob("compiler/passes/fixtures/*.vdsl")):
        prelude, *cases = re.split(r"^--- .*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        texts.extend(prelude + case for case in cases)
    return texts


def _changed(text: str, chance: random.Random) -> str:
    tokens = TOKEN.findall(text)
    words = [token for token in tokens if re.match(r"\w|'|`", token)]
    for _ in range(chance.randint(1, 4)):
        at, what = chance.randrange(len(tokens)), chance.random()
        if what < 0.3:
            tokens[at] = ""
        elif what < 0.8:
            tokens[at] = chance.choice(words)
        else:
            tokens.insert(at, chance.choice(tokens))
    return "".join(tokens)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_texts_with_a_few_tokens_changed(seed: int) -> None:
    chance, texts = random.Random(seed), _texts()
    for _ in range(150):
        result = compile_source(_changed(chance.choice(texts), chance), "changed.vdsl")
        if result.plan is None:
            assert any(d.severity == "error" for d in result.diagnostics)
            continue
        assert load(dump(result.plan)) == result.plan
        assert all(emit(result.plan, form) for form in (*TEXTS, *PICTURES))
        assert all(emit(result.plan, form, as_it_runs=True) for form in PICTURES)
