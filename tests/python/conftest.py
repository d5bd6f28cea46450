# SPDX-License-Identifier: Apache-2.0
"""The package of the build, with eight devices for JAX."""

import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
PACKAGE = Path(os.environ["CAIRN_BUILD"]) / "python"
sys.path.insert(0, str(PACKAGE))
# For the programs that tests start.
os.environ["PYTHONPATH"] = str(PACKAGE)
# A shell makes what it starts with & deaf to Ctrl-C, and whatever that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
