"""Train the built-in model on the story world: ``python -m synapse_edu.study.training``.

The recipe has five parts.  A start at which the heads of the first layer look a few tokens back
(`look_back`).  A curriculum: the first steps hold random sequences that repeat, so
that heads learn to look back and copy; then drills, which ask for one fact out of four; then
stories.  AdamW with a warm-up and a cosine schedule.  Extra weight on the words that the rules
determine, because most words of a story are free and teach nothing.  Gradients clipped to a norm
of 1.

Everything follows from the seed: the batch of step s is drawn from (seed, s) alone, so a run that
is interrupted and resumed ends with the same bits as one that is not, on the same machine with
the same number of BLAS threads.
"""

import argparse
import json
import os
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..config import Config, Rope
from ..errors import BadArgument, FileProblem
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.train import train as train_bpe
from ..tokenizer.vocabulary import Vocabulary
from . import storyworld
from .backward import loss_and_gradients

F32 = np.float32
BOS = 0


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result.

    Attributes
    ----------
    n_steps, n_batch, n_pos : int
        Steps; rows a step; positions a row.
    learning_rate, final_rate : float
        Peak, and where the cosine ends.
    n_warmup : int
    weight_decay, beta1, beta2, clip : float
    n_repeat, least_repeat : int, float
        Steps over which the share of random repeated sequences falls from 0.7 to the least.
    n_drill, least_drill : int, float
        Steps over which the share of drills among the rest falls from all to the least.
    rule_weight : float
        Weight in the loss of a word that the rules determine; other words weigh 1.
    seed : int
    """

    n_steps: int = 5000
    n_batch: int = 16
    n_pos: int = 128
    learning_rate: float = 3e-3
    final_rate: float = 1e-4
    n_warmup: int = 200
    weight_decay: float = 0.05
    beta1: float = 0.9
    beta2: float = 0.98
    clip: float = 1.0
    n_repeat: int = 800
    least_repeat: float = 0.05
    n_drill: int = 2500
    least_drill: float = 0.1
    rule_weight: float = 5.0
    seed: int = 1


def vocabulary(n_merges=400):
    """Metadata of the story world's own byte-level BPE: its words become one token each."""
    words = storyworld.lexicon()
    # each word alone and after a space, twice, so that every pair in it counts
    text = "\n".join(w for w in words) + "".join(f"\n {w}" for w in words)
    return train_bpe(text + "\n" + text, n_merges, pre="smollm")


def story_config(n_vocab, n_layer=4):
    """The built-in model's shape: 4 layers of width 128, 4 heads on 2 key/value heads."""
    return Config(
        architecture="llama",
        n_layer=n_layer,
        n_embd=128,
        n_head=4,
        n_head_kv=2,
        head_dim=32,
        n_ff=352,
        n_vocab=n_vocab,
        n_ctx_train=256,
        tied=True,
        rope=Rope(freq_base=10000.0, n_rot=32, n_ctx_orig=256),
        name="synapse_edu story model",
    )


def initial(config, seed):
    """Initial parameters: normal, scaled by a unit's inputs; the residual branches smaller."""
    rng = np.random.default_rng(seed)

    def normal(n_out, n_in, scale=1.0):
        return (rng.standard_normal((n_out, n_in)) * scale / np.sqrt(n_in)).astype(F32)

    d, f, q, kv = config.n_embd, config.n_ff, config.n_embd_head, config.n_embd_kv
    branch = 1 / np.sqrt(2 * config.n_layer)
    p = {"token_embd": normal(config.n_vocab, d, 0.5), "output_norm": np.ones(d, F32)}
    for i in range(config.n_layer):
        at = f"blk.{i}."
        p[at + "attn_norm"], p[at + "ffn_norm"] = np.ones(d, F32), np.ones(d, F32)  # (d,) each
        p[at + "attn_q"], p[at + "attn_k"] = normal(q, d), normal(kv, d)
        p[at + "attn_v"], p[at + "attn_output"] = normal(kv, d), normal(d, q, branch)
        p[at + "ffn_gate"], p[at + "ffn_up"] = normal(f, d), normal(f, d)
        p[at + "ffn_down"] = normal(d, f, branch)
    look_back(p, config, rng)
    return p


def look_back(p, config, rng):
    """Let the heads of layer 0 begin by looking 1, 2, 3, … tokens back.

    From a purely random start, heads that look back take millions of tokens to form, and nothing
    that copies can be learned before.  All embeddings get one common direction c.  W_k turns c
    into a vector u, and W_q of head h turns it into u rotated by h + 1 positions, so that q·k is
    largest where the key stands h + 1 tokens before the query.  Training is free to undo it.
    """
    c = rng.standard_normal(config.n_embd)  # (n_embd,)
    c = (c / np.linalg.norm(c)).astype(F32)
    p["token_embd"] += F32(0.5) * c
    hd, n_fast = config.head_dim, min(4, config.head_dim // 2)
    theta = config.rope.freq_base ** (-2.0 * np.arange(n_fast) / hd)  # (n_fast,): the fast pairs
    for head in range(config.n_head):
        angle = -(head + 1) * theta  # (n_fast,)
        q, k = np.zeros(hd, F32), np.zeros(hd, F32)  # (hd,) each
        q[0 : 2 * n_fast : 2], q[1 : 2 * n_fast : 2] = np.cos(angle), np.sin(angle)
        k[0 : 2 * n_fast : 2] = 1
        size = F32(1.5 / np.sqrt(n_fast))
        rows = slice(head * hd, (head + 1) * hd)
        p["blk.0.attn_q"][rows] += size * np.outer(q, c)
        if head % config.n_group == 0:
            group = head // config.n_group
            p["blk.0.attn_k"][group * hd : (group + 1) * hd] += size * np.outer(k, c)


# --- batches -----------------------------------------------------------------------------------
def encode_story(tokenizer, story):
    """Ids of a story after the begin token, and for each id the number of its checked word.

    Returns
    -------
    ids : list of int
    word : list of int
        −1 for a token that belongs to no checked word.
    """
    ids = tokenizer.encode(story.text, add_special=False)
    word, spans, at = [], story.spans(), 0
    for token in ids:
        end = at + len(tokenizer.piece(token))
        word.append(next((i for i, (a, b, _) in enumerate(spans) if at >= a and end <= b), -1))
        at = end
    return [BOS, *ids], [-1, *word]


def story_document(tokenizer, rng, recipe, drills):
    tell = storyworld.drill if rng.random() < drills else storyworld.story
    ids, word = encode_story(tokenizer, tell(rng))
    return ids, [recipe.rule_weight if w >= 0 else 1.0 for w in word]


def repeat_document(rng, n_vocab):
    """A random sequence that repeats; only the repetition can be predicted, so only it counts."""
    part = [rng.randrange(257, n_vocab) for _ in range(rng.randint(6, 24))]
    n = rng.randint(2, 3)
    return [BOS, *(part * n)], [0.0] * (1 + len(part)) + [1.0] * (len(part) * (n - 1))


def batch(tokenizer, config, recipe, step):
    """The batch of one step, packed: tokens, targets, weights and starts, each (B, T)."""
    rng = random.Random(f"{recipe.seed}/{step}")
    share = max(recipe.least_repeat, 0.7 * (1 - step / max(1, recipe.n_repeat)))
    drills = max(recipe.least_drill, 1 - step / max(1, recipe.n_drill))
    shape = (recipe.n_batch, recipe.n_pos + 1)
    tokens, weights = np.zeros(shape, np.int64), np.zeros(shape, F32)  # (B, T + 1) each
    starts = np.zeros(shape, np.int64)  # (B, T + 1)
    for row in range(recipe.n_batch):
        at = 0
        while at < shape[1]:
            if rng.random() < share:
                ids, weight = repeat_document(rng, config.n_vocab)
            else:
                ids, weight = story_document(tokenizer, rng, recipe, drills)
            n = min(len(ids), shape[1] - at)
            tokens[row, at : at + n], weights[row, at : at + n] = ids[:n], weight[:n]
            starts[row, at : at + n] = at
            at += len(ids)
    # the target of a document's last token is the next one's begin token: "the end"
    return tokens[:, :-1], tokens[:, 1:], weights[:, 1:], starts[:, :-1]


# --- measuring ---------------------------------------------------------------------------------
def scores(p, config, tokenizer, n_stories=200, seed=10_000, held_out=True):
    """How many of the rule-determined words of fresh stories the model predicts.

    Returns
    -------
    dict
        ``loss`` in nats a token, ``all`` and each kind: share of words right, 0 to 1.
    """
    right, total, losses = (
        dict.fromkeys(storyworld.KINDS, 0),
        dict.fromkeys(storyworld.KINDS, 0),
        [],
    )
    told = storyworld.stories(n_stories, seed, held_out)
    for start in range(0, n_stories, 32):
        rows = [encode_story(tokenizer, s) for s in told[start : start + 32]]
        n_pos = max(len(ids) for ids, _ in rows)
        tokens, weights = np.zeros((len(rows), n_pos), np.int64), np.zeros((len(rows), n_pos), F32)
        for row, (ids, _) in enumerate(rows):
            tokens[row, : len(ids)], weights[row, : len(ids)] = ids, 1
        starts = np.zeros_like(tokens[:, :-1])  # (B, T): one story a row
        loss, best = loss_and_gradients(
            p, config, tokens[:, :-1], tokens[:, 1:], weights[:, 1:], starts, gradients=False
        )
        losses.append(loss)
        for row, (ids, word) in enumerate(rows):
            spans = told[start + row].spans()
            good = dict.fromkeys(range(len(spans)), True)
            for t in range(1, len(ids)):
                if word[t] >= 0 and best[row, t - 1] != ids[t]:
                    good[word[t]] = False
            for i, (_, _, kind) in enumerate(spans):
                total[kind] += 1
                right[kind] += good[i]
    result = {"loss": float(np.mean(losses)), "all": sum(right.values()) / sum(total.values())}
    return result | {kind: right[kind] / max(1, total[kind]) for kind in storyworld.KINDS}


# --- the optimiser -----------------------------------------------------------------------------
def learning_rate(recipe, step):
    """Linear warm-up, then a cosine from the peak to the final rate."""
    if step < recipe.n_warmup:
        return recipe.learning_rate * (step + 1) / recipe.n_warmup
    done = (step - recipe.n_warmup) / max(1, recipe.n_steps - recipe.n_warmup)
    half = (recipe.learning_rate - recipe.final_rate) / 2
    return recipe.final_rate + half * (1 + np.cos(np.pi * min(1.0, done)))


def clip(grads, limit):
    """Scale all gradients together so that their norm is at most `limit`; returns the norm."""
    norm = float(np.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in grads.values())))
    if norm > limit:
        for g in grads.values():
            g *= F32(limit / norm)
    return norm


def adamw(p, grads, m, v, step, recipe):
    """One step of AdamW (Loshchilov & Hutter, 2019), in place; only matrices decay."""
    rate = learning_rate(recipe, step)
    b1, b2, t = recipe.beta1, recipe.beta2, step + 1
    size = F32(rate / (1 - b1**t))
    for name, g in grads.items():
        m[name] *= F32(b1)
        m[name] += F32(1 - b1) * g
        v[name] *= F32(b2)
        v[name] += F32(1 - b2) * g * g
        if p[name].ndim == 2:
            p[name] *= F32(1 - rate * recipe.weight_decay)
        p[name] -= size * m[name] / (np.sqrt(v[name] / F32(1 - b2**t)) + F32(1e-8))


# --- the run -----------------------------------------------------------------------------------
@dataclass
class State:
    """A run between two steps."""

    step: int
    p: dict
    m: dict
    v: dict
    curve: list

    @classmethod
    def new(cls, config, seed):
        p = initial(config, seed)
        zeros = {name: np.zeros_like(x) for name, x in p.items()}
        return cls(0, p, zeros, {name: x.copy() for name, x in zeros.items()}, [])

    def save(self, path):
        """Write to a temporary name, then move: an interruption keeps the older one."""
        path = Path(path)
        arrays = {f"{kind}/{n}": x for kind in "pmv" for n, x in getattr(self, kind).items()}
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez(file, step=self.step, curve=json.dumps(self.curve), **arrays)
        os.replace(part, path)

    @classmethod
    def load(cls, path):
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = {"p": {}, "m": {}, "v": {}}
                for key in file.files:
                    if "/" in key:
                        kind, name = key.split("/", 1)
                        parts[kind][name] = file[key]
                return cls(int(file["step"]), **parts, curve=json.loads(str(file["curve"])))
        except (OSError, ValueError, KeyError) as error:
            raise FileProblem(f"{path}: this is not a training checkpoint ({error}).") from None


def train(
    recipe, config, tokenizer, state=None, until=None, save=None, save_every=250, quiet=False
):
    """Run the recipe from `state` (or the beginning) to step `until` (or the end).

    Returns
    -------
    State
        Its ``curve`` is a list of [step, loss, gradient norm], one entry every 25 steps.
    """
    from tqdm.auto import tqdm

    if recipe.n_pos > config.n_ctx_train:
        raise BadArgument(f"A row of {recipe.n_pos} positions is longer than the model's context.")
    state = state or State.new(config, recipe.seed)
    until = recipe.n_steps if until is None else until
    recent = []
    with tqdm(total=until, initial=state.step, unit="step", disable=quiet) as bar:
        while state.step < until:
            loss, grads = loss_and_gradients(
                state.p, config, *batch(tokenizer, config, recipe, state.step)
            )
            norm = clip(grads, recipe.clip)
            adamw(state.p, grads, state.m, state.v, state.step, recipe)
            state.step += 1
            recent.append(loss)
            bar.update()
            if state.step % 25 == 0:
                state.curve.append([state.step, float(np.mean(recent)), norm])
                bar.set_postfix(loss=f"{np.mean(recent):.3f}")
                recent = []
            if save and state.step % save_every == 0:
                state.save(save)
    if save:
        state.save(save)
    return state


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train the built-in model on the story world.")
    parser.add_argument("--out", type=Path, default=Path("training"), help="folder for the results")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--steps", type=int, default=Recipe.n_steps)
    parser.add_argument("--seed", type=int, default=Recipe.seed)
    options = parser.parse_args(arguments)
    recipe = Recipe(n_steps=options.steps, seed=options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    learned = vocabulary()
    tokenizer = Tokenizer(Vocabulary.from_metadata(learned))
    config = story_config(len(learned["tokenizer.ggml.tokens"]))
    saved = options.out / "checkpoint.npz"
    state = State.load(saved) if options.resume and saved.exists() else None
    started = time.perf_counter()
    state = train(recipe, config, tokenizer, state, save=saved)
    from .export import export

    export(options.out / "built-in.gguf", config, state.p, learned)
    report = {
        "recipe": asdict(recipe),
        "n_params": int(sum(x.size for x in state.p.values())),
        "held_out": scores(state.p, config, tokenizer, 500),
        "trained_pairs": scores(state.p, config, tokenizer, 500, held_out=False),
        "minutes": (time.perf_counter() - started) / 60,
        "curve": state.curve,
    }
    (options.out / "training.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(json.dumps({k: v for k, v in report.items() if k != "curve"}, indent=1))


if __name__ == "__main__":
    main()
