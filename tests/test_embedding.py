"""The embedding's rows, and ids it must not take."""

import numpy as np
import pytest

from synapse_edu.errors import BadArgument
from synapse_edu.formats.matrix import Matrix
from synapse_edu.ops.reference.embedding import embedding

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
WEIGHT = Matrix(TABLE.view(np.uint8), "F32", 3, "token_embd.weight")


def test_rows_in_the_order_of_the_ids():
    assert embedding(WEIGHT, [2, 0, 2]).tolist() == TABLE[[2, 0, 2]].tolist()


@pytest.mark.parametrize("ids", [[4], [-1], [0.5], [[1]], "a"])
def test_ids_that_name_no_row_are_refused(ids):
    with pytest.raises(BadArgument):
        embedding(WEIGHT, ids)
