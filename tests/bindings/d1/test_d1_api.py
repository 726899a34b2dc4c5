"""D1 over HTTP and from the command line: databases, queries, migrations, quotas, tenants, restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.running import Answer, Atoll

READS = """export default { async fetch(request, env) {
  try { return Response.json((await env.DB.prepare("SELECT v FROM t").raw()).flat()); }
  catch (error) { return new Response(error.message, { status: 500 }); }
} }"""
BINDINGS = [{"type": "d1", "name": "DB", "database": "api"}]
