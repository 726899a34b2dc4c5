"""A bundle like those of frameworks: many functions, nearly all of which the first render calls."""

from __future__ import annotations

COMPONENT = """
function Component$N(props, context) {
  const styles = { padding: props.padding ?? $N % 17, margin: props.margin ?? $N % 13, color: "#$N" };
  const children = [];
  if (props.depth > 3) children.push("<b class='c$N'>" + props.title + "</b>");
  else if (context.locale === "de") children.push("<i data-n='$N'>" + (props.title ?? "kein Titel") + "</i>");
  else switch (props.kind) {
    case "list":
      for (let i = 0; i < 2; i++) children.push(`<li style="padding:${styles.padding}px">${i}</li>`);
      break;
    case "table":
      children.push(["<table>", "<tr>", `<td>${styles.margin}</td>`, "</tr>", "</table>"].join(""));
      break;
    default:
      children.push(`<span style="color:${styles.color};margin:${styles.margin}px">${props.title ?? $N}</span>`);
  }
  const onClick = () => context.log("click $N");
  const onFocus = (event) => context.log(event.type + $N);
  return { type: "section", id: $N, html: children.join(""), handlers: { onClick, onFocus }, styles };
}"""


def bundle(size: int) -> str:
    """A worker of about `size` bytes. Its first call renders every component, later calls only one."""
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(COMPONENT.replace("$N", str(len(parts))))
        length += len(parts[-1])
    names = ", ".join(f"Component{number}" for number in range(len(parts)))
    return f"""{"".join(parts)}
const components = [{names}];
let rendered = 0;
export default {{ fetch(request) {{
  const kinds = ["list", "table", "text"];
  const context = {{ locale: "en", log() {{}} }};
  const count = rendered++ === 0 ? components.length : 1;
  let bytes = 0;
  for (let i = 0; i < count; i++) {{
    bytes += components[i]({{ depth: i % 3, kind: kinds[i % 3], title: "t" + i }}, context).html.length;
  }}
  if (new URL(request.url).pathname === "/loop") for (;;);
  return new Response(String(bytes > 0));
}} }};
"""
