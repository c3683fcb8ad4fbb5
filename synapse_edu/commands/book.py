"""``synapse-edu book``: build the workbook as a site, and as a PDF."""

from pathlib import Path

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "book",
        run,
        "build the workbook as a site that needs no kernel and no network",
        "Build the workbook as a site: every chapter with its stored outputs, the exercises with "
        "folded solutions, a glossary, the API. It opens from the disk, without a network. The "
        'packages that build it are in the extra `book`: pip install "synapse_edu[book]".',
    )
    command.add_argument(
        "out", nargs="?", type=Path, default=Path("_build/book"), metavar="OUT",
        help="folder of the site; default: _build/book",
    )  # fmt: skip
    command.add_argument("--pdf", type=Path, metavar="FILE", help="also print the book to a PDF")
    command.add_argument(
        "--lenient", action="store_true", help="go on after warnings, such as a broken link"
    )


def run(options):
    """``synapse-edu book [OUT]``"""
    from ..book.build import build

    start = build(options.out.expanduser(), pdf=options.pdf, strict=not options.lenient)
    print(f"The book is built. Open {start}")
    if options.pdf:
        print(f"Printed: {options.pdf}")
