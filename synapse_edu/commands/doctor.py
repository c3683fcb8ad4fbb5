"""``synapse-edu doctor``: what is wrong with this installation, and how to mend it."""

from .command import add_command

SIGNS = {"good": "  ok  ", "note": " note ", "bad": "WRONG "}


def add(commands):
    command = add_command(
        commands,
        "doctor",
        run,
        "say what is wrong with this installation, and how to mend it",
        "Check Python, the packages, Numba, the folders that are written to, the models and their "
        "checksums, the disk, threads and Chromium, and say how to mend what is wrong. The exit "
        "code is 1 if something is.",
    )
    command.add_argument(
        "--compile",
        action="store_true",
        help="compile the fast functions now, so that no learner waits for it",
    )


def run(options):
    """``synapse-edu doctor``"""
    from .. import doctor

    wrong = 0
    for finding in doctor.examine():
        print(f"{SIGNS[finding.status]} {finding.what}")
        if finding.mend:
            print(f"       → {finding.mend}")
        wrong += finding.status == doctor.BAD
    if options.compile:
        doctor.compile_ahead(print)
    print("Nothing is wrong." if not wrong else f"{wrong} thing(s) to mend, marked WRONG.")
    return 1 if wrong else 0
