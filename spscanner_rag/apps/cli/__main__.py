"""``python -m spscanner_rag.apps.cli``."""

import sys

from spscanner_rag.apps.cli import main

sys.exit(main())
