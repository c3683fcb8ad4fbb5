"""A file that is replaced is the old one or the new one, never half of either."""

import pytest

from synapse_edu.atomic import replacing


def test_the_new_file_takes_the_place_of_the_old(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_text("old", encoding="utf-8")
    with replacing(path) as part:
        part.write_text("new", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("problem", [OSError, KeyboardInterrupt])
def test_an_interruption_leaves_the_old_file_alone(tmp_path, problem):
    path = tmp_path / "model.gguf"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(problem), replacing(path) as part:
        part.write_text("half of the n", encoding="utf-8")
        raise problem
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_written_is_an_error_and_keeps_the_old_file(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_text(encoding="utf-8") == "old"
