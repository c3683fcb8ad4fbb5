"""The commands of ``synapse-edu``, one module each: `add` says what it takes, `run` does it.

What a command needs is imported when it runs, so that ``--help`` answers at once.
"""
