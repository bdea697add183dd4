#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Node client of OpenAI: starts a server and runs node_openai.mjs beside the package."""
import os
import shutil
import subprocess
import sys

from client import KEY, MODEL, SOURCE, idle, serve, skip

folder = os.environ.get("JUNO_CLIENTS_NODE", "")
package = os.path.join(folder, "node_modules", "openai")
if not shutil.which("node"):
    skip("node is not installed")
if not folder or not os.path.isdir(package):
    skip("JUNO_CLIENTS_NODE names no folder with node_modules/openai")
with serve() as server:
    script = os.path.join(SOURCE, "tests", "clients", "node_openai.mjs")
    done = subprocess.run(["node", script, os.path.join(package, "index.mjs"), server.url + "/v1", KEY, MODEL])
    assert done.returncode != 0 or idle(server), "what a client has left goes on"
sys.exit(done.returncode)
