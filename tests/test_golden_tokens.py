"""Every recorded row of llama.cpp's tokenizers: ids, pieces, texts and splits."""

import base64
import gzip
import hashlib
import json
from pathlib import Path

import pytest
import shared_data
from shared_data import needs_shared

import synapse_edu as se
from synapse_edu.tokenizer.pretokenize import Splitter
from synapse_edu.tokenizer.utf8 import decode_lenient

ROOT = Path(__file__).resolve().parent.parent
TOKENS = ROOT / "tests" / "golden" / "tokens"
TINY = sorted(p.name.removesuffix(".jsonl.gz") for p in TOKENS.glob("tiny-*.jsonl.gz"))
REAL = ["gpt-2", "llama-bpe", "llama-spm", "mistral-spm", "qwen2", "smollm", "tekken"]
SPLITS = ["default", "gpt-2", "llama-bpe", "qwen2", "smollm", "tekken"]


def raw(value):
    """A recorded byte string: a JSON string, or base64 where it is not valid UTF-8."""
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode("utf-8")


def rows(path):
    opened = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8")
    )
    with opened as file:
        return [json.loads(line) for line in file]


def wanted_ids(header, row):
    """Ids by (add_special, parse_special); rows leave out what follows from the others."""
    before, after = header["affix"]
    t00 = row["t00"]
    t01 = row.get("t01", t00)
    return {
        (False, False): t00,
        (False, True): t01,
        (True, False): row.get("t10", before + t00 + after),
        (True, True): row.get("t11", before + t01 + after),
    }


def check_encode(tok, header, row):
    text = raw(row["t"])
    wanted = wanted_ids(header, row)
    for (add, parse), ids in wanted.items():
        assert list(tok.encode(text, add_special=add, parse_special=parse)) == ids, (
            text,
            add,
            parse,
        )
    for remove in (0, 1):
        for unparse in (0, 1):
            want = row.get(f"d{remove}{unparse}")
            want = text if want is None else raw(want)
            got = tok.decode_bytes(wanted[True, True], bool(remove), bool(unparse))
            assert got == want, (text, remove, unparse)


def check_piece(tok, row):
    full = raw(row["p"])
    one = raw(row["lstrip1"]) if "lstrip1" in row else full
    two = raw(row["lstrip2"]) if "lstrip2" in row else one
    assert tok.piece(row["id"]) == full
    assert tok.piece(row["id"], special=False) == (raw(row["hidden"]) if "hidden" in row else full)
    assert tok.piece(row["id"], lstrip=1) == one and tok.piece(row["id"], lstrip=2) == two


def check_detok(tok, row):
    for remove in (0, 1):
        for unparse in (0, 1):
            got = tok.decode_bytes(row["ids"], bool(remove), bool(unparse))
            assert got == raw(row[f"d{remove}{unparse}"]), row


def check_all(tok, lines):
    header, counts = lines[0], {"encode": 0, "piece": 0, "detok": 0}
    for row in lines[1:]:
        kind = row["c"] if row["c"] in ("piece", "detok") else "encode"
        counts[kind] += 1
        if kind == "piece":
            check_piece(tok, row)
        elif kind == "detok":
            check_detok(tok, row)
        else:
            check_encode(tok, header, row)
    assert min(counts.values()) > 0, counts


@pytest.mark.parametrize("name", TINY)
def test_tiny_vocabularies(name):
    assert len(TINY) == 10
    check_all(se.load_tokenizer(TOKENS / f"{name}.gguf"), rows(TOKENS / f"{name}.jsonl.gz"))


@needs_shared("the tiny vocabularies of every family, above")
@pytest.mark.parametrize("name", REAL)
def test_real_vocabularies(name, tmp_path):
    vocabulary = shared_data.TOKENS / "vocabs" / f"{name}.gguf.gz"
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(gzip.decompress(vocabulary.read_bytes()))
    check_all(se.load_tokenizer(path), rows(shared_data.TOKENS / f"{name}.jsonl"))


@pytest.mark.parametrize("pre", SPLITS)
def test_splits(pre):
    for row in rows(TOKENS / f"split-{pre}.jsonl.gz"):
        words = Splitter(pre).split(decode_lenient(raw(row["t"])))
        assert [len(word) for word in words] == row["n"], row["t"]


@pytest.mark.parametrize("pre", SPLITS)
def test_every_code_point_splits_alike(pre):
    """One line for each code point of every assigned block, folded into a digest a block."""
    with gzip.open(TOKENS / "split-digest.json.gz", "rt", encoding="utf-8") as file:
        blocks = json.load(file)["blocks"][pre]
    splitter = Splitter(pre)
    for block, wanted in blocks.items():
        lines = []
        for code in range(int(block, 16), int(block, 16) + 256):
            c = chr(code)
            text = f"a{c}b {c} 1{c}2 '{c}s {c}{c}\n{c}{c}/A{c}b"
            lines.append(",".join(str(len(word)) for word in splitter.split(text)) + "\n")
        found = hashlib.sha256("".join(lines).encode("ascii")).hexdigest()[:12]
        assert found == wanted, f"{pre}: code points from U+{block}"
