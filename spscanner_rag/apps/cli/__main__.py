"""``python -m spscanner_rag.apps.cli``."""

import sys

from spscanner_rag.apps.cli.app import main

sys.exit(main())
