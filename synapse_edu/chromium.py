"""Where a Chromium or a Chrome is: it prints the book and runs the browser tests."""

import os
import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROGRAM_FOLDERS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")  # of Windows


def find():
    """Path of the first one on the path or in the usual place of the system, or None."""
    on_path = next((path for name in NAMES if (path := shutil.which(name))), None)
    return on_path or next((str(path) for path in _usual_places() if path.is_file()), None)


def _usual_places():
    for name in ("Google Chrome", "Chromium"):
        yield Path(f"/Applications/{name}.app/Contents/MacOS/{name}")
    for folder in PROGRAM_FOLDERS:
        if folder in os.environ:
            yield Path(os.environ[folder], "Google", "Chrome", "Application", "chrome.exe")
