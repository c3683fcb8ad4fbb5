"""What `bench.Bench` measured, as lines of text: medians, ratios, and shares of the limits."""

import statistics

from .machine import sentence

MB = 1e6


def rate(test, side):
    """Median tokens a second of one side in a test; None if it did not take part."""
    runs = test["seconds"].get(side)
    return test["tokens"] / statistics.median(runs) if runs else None


def theirs(test):
    """The faster of llama.cpp's two settings: (tokens a second, setting), or (None, None)."""
    found = [(rate(test, flash), flash) for flash in ("off", "default") if flash in test["seconds"]]
    return max(found) if found else (None, None)


def ratio(test):
    """How many times as many tokens a second as llama.cpp; None without one."""
    best, _ = theirs(test)
    return rate(test, "ours") / best if best else None


def bytes_read(found, test):
    """Bytes that one decoded token reads: all weights, and the cache up to its position."""
    position = test.get("depth", 0) + test["tokens"] / 2
    model = found["model"]
    return model["bytes_per_pass"] + position * model["cache_bytes_per_position"]


def share_of_bandwidth(found, run, test):
    """Share of the measured read bandwidth at which a decode test reads its bytes."""
    return rate(test, "ours") * bytes_read(found, test) / run["bandwidth"]


def share_of_memory(found, run):
    """Peak resident memory over the tensors' bytes and the cache's; None where not known."""
    peak = run["peak_memory"]["ours"]
    return peak / (found["model"]["bytes"] + run["cache_bytes"]) if peak else None


def summary(found):
    """The figures alone, by number of threads: what a later reader compares."""
    rows = []
    for run in found["runs"]:
        row = {"n_threads": run["n_threads"], "bandwidth": run["bandwidth"]}
        for test in run["tests"]:
            best, flash = theirs(test)
            row[test["name"]] = {
                "ours": rate(test, "ours"),
                "llama.cpp": best,
                "flash attention": flash,
                "ratio": ratio(test),
            }
        rows.append(row)
    return rows


def lines(found):
    """The table: one list of lines."""
    model, backend = found["model"], found["backend"]
    out = [
        f"{model['name']}: {model['bytes'] / MB:.1f} MB of tensors; backend {backend}",
        sentence(found["machine"]),
    ]
    versions = {run["theirs"]["version"] for run in found["runs"] if run["theirs"]}
    out += [f"against llama.cpp {version}" for version in sorted(versions)]
    if found["load"] and found["load"] > found["machine"]["cores"] / 2:
        out.append(
            f"Other work was under way (load {found['load']:.1f} at the start): ratios are less "
            "certain, absolute figures too low."
        )
    if backend == "reference":
        out.append("The reference has no threads of its own: their number is llama.cpp's alone.")
    for run in found["runs"]:
        out += ["", *_block(found, run)]
    return out


def _block(found, run):
    plural = "" if run["n_threads"] == 1 else "s"
    out = [
        f"{run['n_threads']} thread{plural}; memory is read at {run['bandwidth'] / 1e9:.1f} GB/s",
        f"{'':28}{'ours':>13}{'llama.cpp':>13}{'ratio':>9}",
    ]
    for test in run["tests"]:
        best, flash = theirs(test)
        line = f"{test['name']:28}{rate(test, 'ours'):9.1f} t/s"
        if best:
            line += f"{best:9.1f} t/s{ratio(test):7.2f} ×  flash attention {flash}"
        if "prefill" not in test["name"]:
            line += f"  {100 * share_of_bandwidth(found, run, test):.0f} % of the bandwidth"
        out.append(line)
    out += [_start(run), _memory(found, run)]
    return out + [f"left out: {reason}" for reason in run["left_out"]]


def _start(run):
    medians = {side: statistics.median(s) for side, s in run["start"].items()}
    line = f"{'first token after a start':28}{medians['ours']:11.2f} s"
    if "off" in medians:
        best = min(medians["off"], medians["default"])
        line += f"{best:11.2f} s{best / medians['ours']:7.2f} ×"
    return line + f"  {run['first_start']['ours']:.2f} s the first time"


def _memory(found, run):
    peak = run["peak_memory"]
    if not peak["ours"]:
        return f"{'peak memory':28}not told by this system"
    line = f"{'peak memory':28}{peak['ours'] / MB:10.0f} MB"
    if peak.get("off"):
        line += f"{min(peak['off'], peak['default']) / MB:10.0f} MB{'':9}"
    python = run["before_loading"]["ours"] / MB
    if python * MB < peak["ours"] / 2:  # otherwise it is Python's size that would be told
        line += f"  {share_of_memory(found, run):.2f} × tensors and cache,"
    return line + f" {python:.0f} MB before loading"
