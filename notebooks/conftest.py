"""Chapters under pytest: cells that need SmolLM2 run where it can be had, and CI insists."""

import os
import tempfile

TAG = "smollm2"
SENTENCE = (
    "{} chapter cell(s) need SmolLM2 and were left out, because it could not be fetched: {} "
    "Fetch it with `synapse-edu models get smollm2`."
)
left_out = []


def pytest_configure():
    # A chapter's quick checks record progress; a test run must not touch the learner's own.
    os.environ["SYNAPSE_PROGRESS"] = tempfile.mkdtemp(prefix="synapse-progress-")


def needs_smollm2(item):
    """Whether a chapter's cell, or its whole notebook, carries the tag ``smollm2``."""
    cell = getattr(item, "cell", None)
    if cell is None:
        return False
    notebook = getattr(item.parent, "nb", {})
    tags = [*cell.metadata.get("tags", []), *notebook.get("metadata", {}).get("tags", [])]
    return TAG in tags


def why_no_smollm2():
    """Fetch SmolLM2 if it is not here; the reason if that fails, else None."""
    from synapse_edu.checkpoint import catalogue
    from synapse_edu.errors import SynapseError

    try:
        catalogue.get(TAG)
    except SynapseError as problem:
        return str(problem)
    return None


def pytest_collection_modifyitems(config, items):
    wanting = [item for item in items if needs_smollm2(item)]
    if not wanting or config.option.collectonly:
        return
    if reason := why_no_smollm2():
        left_out.append(SENTENCE.format(len(wanting), reason))
        items[:] = [item for item in items if item not in wanting]
        config.hook.pytest_deselected(items=wanting)


def pytest_terminal_summary(terminalreporter):
    for sentence in left_out:
        terminalreporter.section("SmolLM2 is not here")
        terminalreporter.write_line(sentence)


def pytest_sessionfinish(session, exitstatus):
    if left_out and os.environ.get("CI") and exitstatus == 0:
        session.exitstatus = 1
