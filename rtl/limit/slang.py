#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""slang's front end, from the Python package pyslang, which has no program of its own. Takes slang's arguments. Exit: 0 it takes the files, 1 it does not."""

import shlex
import sys

from pyslang.driver import Driver

driver = Driver()
driver.addStandardArgs()
read = driver.parseCommandLine(shlex.join(["slang", "--color-diagnostics=false", "-Werror", *sys.argv[1:]])) and driver.processOptions() and driver.parseAllSources()
sys.exit(0 if read and driver.runFullCompilation(quiet=True) else 1)
