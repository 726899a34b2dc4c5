"""The page at `/` of a control host: the deployed workers, and the command that deploys another.

It is self-contained and has no scripts, so its Content-Security-Policy can forbid everything but its styles.
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
<p>{greeting}</p>
<p><a href="/dashboard/">Open the dashboard</a></p>
{workers}<h2>Deploy {another}</h2>
<pre>curl -X POST {control}/api/workers \\
{token}  -H "Content-Type: application/json" \\
  -d '{{"name":"hello","script":"export default {{ fetch() {{ return new Response(\\"Hello!\\"); }} }}"}}'</pre>
<p class="soft">See also <a href="/api">the control API</a>, <a href="/api/workers">/api/workers</a>,
<a href="/metrics">/metrics</a>, <a href="/readyz">/readyz</a> and <a href="/admin/pool">/admin/pool</a>.</p>
</html>
"""


TOKEN_LINE = '  -H "Authorization: Bearer $ATOLL_TOKEN" \\\n'
STRANGER = (
    "This node requires a token, and lists its workers only to callers who have one. The first start left one"
    " in the data folder, in <code>admin-token</code>; <code>atoll token create</code> makes more."
)


def front_page(
    workers: Sequence[tuple[str, str]] | None, count: int, control: str, version: str, *, with_token: bool
) -> str:
    """`workers` are the first of `count` names with their addresses; None for callers without a token. `control` is
    the address of this request."""
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td><a href="{escape(url)}">{escape(url)}</a></td></tr>\n'
        for name, url in workers or ()
    )
    if workers is not None and count > len(workers):
        rows += f'<tr><td>…</td><td>{count - len(workers):,} more: <a href="/api/workers">/api/workers</a></td></tr>\n'
    here = {0: "No worker is", 1: "One worker is"}.get(count, f"{count:,} workers are")
    return PAGE.format(
        greeting=STRANGER if workers is None else f"Version {escape(version)}. {here} here.",
        workers=f"<h2>Workers</h2>\n<table>\n{rows}</table>\n" if workers else "",
        another="a worker" if workers is None else "another one" if workers else "your first worker",
        control=escape(control),
        token=TOKEN_LINE if with_token else "",
    )
