"""JupyterLab in headless Chromium, as fixtures."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from synapse_edu import chromium as chromium_of_this_computer

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# "Idle" alone is not enough: before the kernel is attached JupyterLab says so too, and running a
# cell then asks for a kernel.
READY = """() => {
  const kernel = document.querySelector('.jp-KernelName');
  const state = document.querySelector('.jp-Notebook-ExecutionIndicator');
  return kernel && /Python/.test(kernel.textContent) && state && state.dataset.status === 'idle';
}"""
# JupyterLab keeps only visible cells in the page, so the state is read and not the prompts.
DONE = """() => {
  const state = document.querySelector('.jp-Notebook-ExecutionIndicator');
  const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
  const texts = prompts.map((p) => p.textContent.trim());
  return state && state.dataset.status === 'idle' && texts.some((t) => /\\[\\d+\\]/.test(t))
    && !texts.includes('[*]:');
}"""


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    """The path of a Chromium.  Without one these tests are skipped; in CI that is a failure."""
    found = chromium_of_this_computer.find()
    if found is None:
        sentence = "There is no Chromium here, so JupyterLab was not tried in a browser."
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def private_jupyter(home):
    """An environment in which no setting of the user is read or changed."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "SYNAPSE_PROGRESS": "progress",
    }
    quiet = home / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}', encoding="utf-8")
    return {**os.environ, **{name: str(home / folder) for name, folder in folders.items()}}


@pytest.fixture(scope="session")
def lab(tmp_path_factory, chromium):
    """`synapse-edu lab` on a free port, with a working copy of its own: (address, folder)."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    port, log = free_port(), home / "lab.log"
    command = [sys.executable, "-m", "synapse_edu", "lab", "--no-browser"]
    command += ["--port", str(port), "--work", str(work)]
    with log.open("wb") as sink:
        server = subprocess.Popen(
            command, env=private_jupyter(home), stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        yield _address(server, port, log), work
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()


def _address(server, port, log):
    """Wait until the server answers; its address with the token that it printed."""
    for _ in range(600):
        text = log.read_text(encoding="utf-8", errors="replace")
        if server.poll() is not None:
            raise RuntimeError(text)
        if "token=" in text:
            token = text.split("token=")[1].split()[0]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={token}", timeout=2)
                return f"http://127.0.0.1:{port}", token
            except OSError:
                pass
        time.sleep(0.1)
    raise RuntimeError("JupyterLab did not answer within a minute:\n" + text)


@pytest.fixture(scope="session")
def browser(chromium):
    """One Chromium with a profile of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, tempfile.TemporaryDirectory() as profile:
        context = play.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            headless=True,
            args=FLAGS,
            viewport={"width": 1300, "height": 1000},
        )
        yield context
        context.close()


@pytest.fixture
def open_notebook(lab, browser):
    """Open a notebook of the working copy, and run it; the page collects what went wrong."""
    pages = []

    def _open(name, run=True, timeout=240_000):
        (url, token), _ = lab
        page = browser.new_page()
        pages.append(page)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("dialog", lambda dialog: (page.problems.append(dialog.message), dialog.dismiss()))
        # /doc shows one document: no side panel, and no workspace to restore.
        page.goto(f"{url}/doc/tree/{name}?token={token}")
        page.wait_for_selector(".jp-Notebook", timeout=90_000)
        page.wait_for_function(READY, timeout=90_000)
        if run:
            page.click(".lm-MenuBar-itemLabel:text-is('Run')")
            page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
            page.wait_for_function(DONE, timeout=timeout)
        return page

    yield _open
    for page in pages:
        page.close()
