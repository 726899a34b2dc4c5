"""The page at `/` of a control host: what runs here, and the command that deploys the next one.

Self-contained, without scripts: it loads nothing, so its Content-Security-Policy can forbid everything but its styles.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Atoll</title>
<style>
  :root {{ color-scheme: light dark; --ink: #16252d; --soft: #5b6f79; --line: #dbe4e8; --back: #fbfdfd; --code: #eef4f5;
    --link: #00707c; }}
  @media (prefers-color-scheme: dark) {{ :root {{ --ink: #e4eef1; --soft: #93a8b2; --line: #26363e; --back: #10191e;
    --code: #18252c; --link: #5fd0dc; }} }}
  body {{ margin: 0 auto; max-width: 46rem; padding: 3rem 1.25rem; color: var(--ink); background: var(--back);
    font: 1rem/1.55 system-ui, sans-serif; }}
  h1 {{ margin: 0; font-size: 1.9rem; letter-spacing: -.02em; }}
  h2 {{ margin: 2.5rem 0 .75rem; font-size: 1.05rem; }}
  p, .soft {{ color: var(--soft); }}
  a {{ color: var(--link); }}
  table {{ width: 100%; border-collapse: collapse; }}
  td {{ padding: .55rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }}
  td:first-child {{ padding-right: 1.5rem; font-weight: 600; }}
  pre {{ padding: 1rem; border-radius: .5rem; background: var(--code); overflow-x: auto; font-size: .875rem; }}
</style>
<h1>Atoll</h1>
<p>Version {version}. {count} here.</p>
{workers}<h2>Deploy {another}</h2>
<pre>curl -X POST {control}/api/workers \\
  -H "Content-Type: application/json" \\
  -d '{{"name":"hello","script":"export default {{ fetch() {{ return new Response(\\"Hello!\\"); }} }}"}}'</pre>
<p class="soft">See also <a href="/api">the control API</a>, <a href="/api/workers">/api/workers</a>,
<a href="/metrics">/metrics</a>, <a href="/readyz">/readyz</a> and <a href="/admin/pool">/admin/pool</a>.</p>
</html>
"""


def front_page(workers: Sequence[tuple[str, str]], control: str, version: str) -> str:
    """`workers` are names with their addresses; `control` is the address the reader came by."""
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td><a href="{escape(url)}">{escape(url)}</a></td></tr>\n' for name, url in workers
    )
    return PAGE.format(
        version=escape(version),
        count={0: "No worker is", 1: "One worker is"}.get(len(workers), f"{len(workers):,} workers are"),
        workers=f"<h2>Workers</h2>\n<table>\n{rows}</table>\n" if workers else "",
        another="another one" if workers else "your first worker",
        control=escape(control),
    )
