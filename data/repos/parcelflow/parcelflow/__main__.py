"""Allow ``python -m parcelflow``."""
import sys

from parcelflow.cli import main

sys.exit(main())
