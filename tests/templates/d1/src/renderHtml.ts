export function renderHtml(content: string) {
  return `<!DOCTYPE html><html lang="en"><head><title>D1</title></head><body><pre><code>${content}</code></pre></body></html>`;
}
