"""What the doctor finds in a sound installation, and in broken ones."""

import shutil
import sys
from types import SimpleNamespace

from synapse_edu import doctor
from synapse_edu.commands import doctor as command


def statuses(check):
    return [finding.status for finding in check()]


def text_of(check):
    return " ".join(f"{f.what} {f.mend}" for f in check())


def test_a_sound_installation_has_nothing_wrong(capsys):
    assert command.run(SimpleNamespace(compile=False)) == 0
    said = capsys.readouterr().out
    assert "Nothing is wrong." in said and "WRONG" not in said
    assert "built-in model computes what it should" in said


def test_an_old_python_is_told(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    assert statuses(doctor._python) == ["bad"]


def test_a_missing_and_an_old_package_are_named(monkeypatch):
    needs = ["numpy>=99", "no-such-package", "tqdm", 'x; extra == "test"']
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: needs)
    said = text_of(doctor._packages)
    assert "no-such-package is missing" in said and "numpy is" in said and ">=99" in said
    assert "tqdm is" not in said and "x is" not in said


def test_an_untested_version_is_a_note(monkeypatch):
    monkeypatch.setattr(doctor, "_tested_versions", lambda: {"numpy": {"0.1"}})
    assert statuses(doctor._packages) == ["note", "good"]


def test_numba_that_cannot_compile_is_told(monkeypatch):
    import numba

    def refuse(function):
        raise RuntimeError("no LLVM")

    monkeypatch.setattr(numba, "njit", refuse)
    assert statuses(doctor._numba) == ["bad"] and "no LLVM" in text_of(doctor._numba)


def test_a_file_in_the_place_of_a_folder_is_told(monkeypatch, tmp_path):
    (tmp_path / "models").write_text("", encoding="utf-8")
    monkeypatch.setenv("SYNAPSE_HOME", str(tmp_path / "models"))
    assert "bad" in statuses(doctor._folders)


def test_a_damaged_model_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNAPSE_HOME", str(tmp_path))
    assert "models get smollm2" in text_of(doctor._models)  # absent: a note
    place = next(doctor.catalogue.place(d) for d in doctor.catalogue.DOWNLOADS.values())
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half of it")
    assert statuses(doctor._models) == ["good", "bad"]


def test_a_full_disk_is_told(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**20))
    assert statuses(doctor._disk) == ["note"]


def test_many_blas_threads_are_told(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "16")
    assert "ten times slower" in text_of(doctor._threads)


def test_no_chromium_is_a_note(monkeypatch):
    monkeypatch.setattr(doctor.chromium, "find", lambda: None)
    assert statuses(doctor._chromium) == ["note"]


def test_chrome_is_found_off_the_path(monkeypatch, tmp_path):
    program = tmp_path / "Google" / "Chrome" / "Application" / "chrome.exe"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"")
    monkeypatch.setattr(doctor.chromium.shutil, "which", lambda name: None)
    monkeypatch.setenv("PROGRAMFILES", str(tmp_path))
    assert doctor.chromium.find() == str(program)


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(monkeypatch, capsys):
    def _strange():
        raise ValueError("never seen")

    monkeypatch.setattr(doctor, "CHECKS", (_strange, doctor._python))
    assert command.run(SimpleNamespace(compile=False)) == 1
    said = capsys.readouterr().out
    assert "never seen" in said and "1 thing(s) to mend" in said and "Python" in said
