"""The speed table: its rows come from real encodings."""

import pytest
from token_files import TOKENS, tiny

from synapse_edu.errors import BadArgument
from synapse_edu.study.tokenizer_speed import compare, main, table

TEXT = "The cat sat on the mat, 123 times.\n" * 40


@pytest.mark.parametrize("name", ["tiny-llama-bpe", "tiny-gpt-2", "tiny-spm"])
def test_rows(name):
    rows = compare(TOKENS / f"{name}.gguf", TEXT)
    ours = rows[1]
    assert ours[0] == "synapse_edu" and ours[2] == len(tiny(name).encode(TEXT, add_special=False))
    assert all(row[1] > 0 for row in rows) and ours[3] == pytest.approx(len(TEXT) / 1e6 / ours[1])
    assert "synapse_edu" in table(rows) and "MB/s" in table(rows)


def test_the_command(tmp_path, capsys):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert main([str(TOKENS / "tiny-smollm.gguf"), str(path)]) == 0
    assert "loading the vocabulary" in capsys.readouterr().out
    assert main([]) == 2
    with pytest.raises(BadArgument):
        compare(TOKENS / "tiny-smollm.gguf", "")
