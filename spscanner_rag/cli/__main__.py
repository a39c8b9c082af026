"""``python -m spscanner_rag.cli``."""

import sys

from spscanner_rag.cli.app import main

sys.exit(main())
