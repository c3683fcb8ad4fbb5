"""``synapse-edu generate``: let a model continue a text."""

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "generate",
        run,
        "let a model continue a text",
        "Let a model continue a text, and print each token as it is chosen.",
    )
    command.add_argument("prompt", help="the text to continue, in quotes")
    command.add_argument("--model", help="a GGUF file or a model's name (otherwise the default)")
    command.add_argument("--max-tokens", type=int, default=64, metavar="N", help="default: 64")
    command.add_argument(
        "--temperature", type=float, default=0.0, help="0, the default: always the likeliest token"
    )
    command.add_argument("--top-k", type=int, default=0, metavar="K", help="0: all tokens")
    command.add_argument("--top-p", type=float, default=1.0, metavar="P", help="1: all tokens")
    command.add_argument("--seed", type=int, default=0, help="the same seed, the same text")


def run(options):
    """``synapse-edu generate PROMPT``"""
    import synapse_edu as se

    model = se.load(options.model) if options.model else se.load()
    sampler = se.Sampler(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )
    tokens = model.generate(options.prompt, max_tokens=options.max_tokens, sampler=sampler)
    print(options.prompt, end="", flush=True)
    for token in tokens:
        print(token.text, end="", flush=True)
    print()
