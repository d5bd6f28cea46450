# SPDX-License-Identifier: Apache-2.0
"""Peers are set up before anything imports them: JAX on eight CPU devices, with 64-bit types."""

import logging
import os
import warnings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
