"""``synapse-edu offline-kit``: all that a room without internet needs, in one folder."""

from pathlib import Path

from .command import add_command

PLATFORMS = "win_amd64, macosx_11_0_arm64, macosx_12_0_arm64, manylinux_2_28_x86_64"


def add(commands):
    command = add_command(
        commands,
        "offline-kit",
        run,
        "put all that a room without internet needs into one folder",
        "Fetch every package, in the versions that were tested together, with this project and "
        "the SmolLM2 model, into a folder. Its README installs the workbook without internet. "
        "Run this in a clone, on a computer with internet.",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="a new folder")
    command.add_argument(
        "--platform", action="append", default=[], metavar="TAG",
        help=f"for other computers than this one; may be given several times: {PLATFORMS}",
    )  # fmt: skip
    command.add_argument("--python", metavar="3.12", help="their Python; default: this one's")
    command.add_argument("--no-model", action="store_true", help="leave SmolLM2 out (93 MB)")


def run(options):
    """``synapse-edu offline-kit OUT``"""
    from .. import offline_kit

    readme = offline_kit.make(
        options.out.expanduser(), tuple(options.platform), options.python, not options.no_model
    )
    print(f"The kit is ready. Begin with {readme}")
