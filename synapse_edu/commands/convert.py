"""``synapse-edu convert``: make a GGUF file of a Hugging Face folder."""

import sys
from pathlib import Path

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "convert",
        run,
        "make a GGUF file of a Hugging Face folder",
        "Make a GGUF file of a folder with config.json, *.safetensors and a tokenizer, as models "
        "are published on Hugging Face.",
    )
    command.add_argument("folder", type=Path, help="the folder with config.json")
    command.add_argument("file", type=Path, help="the GGUF file to write")
    command.add_argument("--format", help="of the matrices, such as F16 or Q8_0; default: as saved")


def run(options):
    """``synapse-edu convert FOLDER FILE``"""
    from ..checkpoint.convert import convert

    def say(sentence):
        print(f"Note: {sentence}", file=sys.stderr)

    print(convert(options.folder, options.file, options.format, say))
