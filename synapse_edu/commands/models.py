"""``synapse-edu models``: list the models known by name, or fetch one."""

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "models",
        run,
        "list the models known by name, or fetch one",
        "List the models known by name, or fetch one so that it works offline afterwards.",
    )
    command.add_argument(
        "action", nargs="?", choices=["list", "get"], default="list", help="list (default) or get"
    )
    command.add_argument("name", nargs="?", help="which model to get")


def run(options):
    """``synapse-edu models [list | get NAME]``"""
    from ..checkpoint import catalogue
    from ..errors import BadArgument

    if options.action == "list":
        print(catalogue.models())
        return
    if options.name is None:
        raise BadArgument("Say which model to get; `synapse-edu models` lists the names.")
    print(catalogue.get(options.name))
