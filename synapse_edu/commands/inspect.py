"""``synapse-edu inspect``: show what a GGUF file holds."""

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "inspect",
        run,
        "show what a GGUF file holds, without loading its weights",
        "Show a GGUF file's model, metadata and tensors. The weights are not read, so that a "
        "large file opens as fast as a small one.",
    )
    command.add_argument("file", help="a GGUF file, its first shard, or a model's name")
    command.add_argument("--tensors", action="store_true", help="list every tensor")
    command.add_argument("--metadata", action="store_true", help="list every metadata key")


def run(options):
    """``synapse-edu inspect FILE``"""
    from .. import describe

    for line in describe.describe_file(options.file, options.tensors, options.metadata):
        print(line)
