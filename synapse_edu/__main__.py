"""``python -m synapse_edu`` is ``synapse-edu``, for systems whose PATH lacks the command."""

import sys

from .cli import main

sys.exit(main())
