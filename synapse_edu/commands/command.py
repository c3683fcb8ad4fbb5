"""What every command has: a name, a summary for the list, and a function to run."""


def add_command(commands, name, run, summary, description):
    """Add the command `name` to the subparsers `commands`; its parser, for the arguments."""
    command = commands.add_parser(name, help=summary, description=description)
    command.set_defaults(run=run)
    return command
