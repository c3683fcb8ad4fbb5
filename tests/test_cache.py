"""The cache: sizes, rewinding, tickets, and clear refusals."""

import numpy as np
import pytest

from synapse_edu.config import Config
from synapse_edu.errors import BadArgument, ContextFull
from synapse_edu.model.cache import KVCache

CONFIG = Config("llama", 3, 32, 4, 2, 8, 64, 100, 2048)


def rows(n, value=1.0):
    return np.full((n, 2, 8), value, np.float32)


def filled(n=4, n_ctx=6, dtype="float16"):
    cache = KVCache(CONFIG, n_ctx, dtype)
    ticket = cache.begin(n)
    for layer in range(3):
        cache.store(ticket, layer, rows(n), rows(n, 2))
    cache.commit(ticket, range(n))
    return cache


def test_bytes_are_two_rows_a_layer_and_position():
    cache = filled()
    assert cache.nbytes_used == 2 * 3 * 2 * 8 * 2 * 4
    assert cache.nbytes == 2 * 3 * 2 * 8 * 2 * 6
    assert filled(dtype="float32").nbytes == 2 * cache.nbytes
    assert "4 of 6 positions" in repr(cache)


def test_rewinding_forgets_ids_and_rows_are_written_again():
    cache = filled()
    cache.truncate(1)
    assert len(cache) == cache.n == 1 and cache.ids == [0] and cache.n_clean == 1
    ticket = cache.begin(2)
    keys, values = cache.store(ticket, 0, rows(2, 7), rows(2, 8))
    assert keys.shape == (2, 3, 8) and keys[0, :, 0].tolist() == [1, 7, 7]
    assert values[1, :, 0].tolist() == [2, 8, 8]


def test_edited_positions_are_not_clean():
    cache = filled(2)
    cache.commit(cache.begin(1), [9], edited=True)
    cache.commit(cache.begin(1), [9])
    assert cache.n == 4 and cache.n_clean == 2
    cache.truncate(2)
    cache.commit(cache.begin(1), [9])
    assert cache.n_clean == 3


def test_float16_storage_rounds_half_to_even_and_overflows_silently():
    cache = KVCache(CONFIG, 2)
    with np.errstate(all="raise"):
        keys, _ = cache.store(cache.begin(1), 0, rows(1, 2049.0), rows(1, 1e6))
    assert keys[0, 0, 0] == 2048 and cache.v[0, 0, 0, 0] == np.inf


def test_too_many_positions_name_both_numbers():
    with pytest.raises(ContextFull, match="3 tokens after the 4 already there.* 6 positions"):
        filled().begin(3)


@pytest.mark.parametrize("n", [-1, 5, 1.5, True, None])
def test_rewinding_beyond_what_is_there_is_refused(n):
    with pytest.raises(BadArgument, match="truncate"):
        filled().truncate(n)


@pytest.mark.parametrize("n_ctx", [0, -4, 2.0, "8", True])
def test_impossible_sizes_are_refused(n_ctx):
    with pytest.raises(BadArgument, match="n_ctx"):
        KVCache(CONFIG, n_ctx)


def test_a_cache_of_another_model_or_storage_is_refused():
    cache = filled()
    cache.check(CONFIG, "float16")
    for config, dtype in ((CONFIG, "float32"), (CONFIG.replace(n_layer=4), "float16")):
        with pytest.raises(BadArgument, match="new_cache"):
            cache.check(config, dtype)


def test_an_old_ticket_is_refused():
    cache = filled()
    old = cache.begin(1)
    cache.begin(1)
    with pytest.raises(BadArgument, match="its own cache"):
        cache.store(old, 0, rows(1), rows(1))
    old = cache.begin(1)
    cache.truncate(0)
    with pytest.raises(BadArgument, match="its own cache"):
        cache.commit(old, [1])
