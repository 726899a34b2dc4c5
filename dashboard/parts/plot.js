// The module that brings uPlot. Colours come from the page's own, so charts follow light and dark.
import uPlot from "uplot";

const HEIGHT = 180;
const shared = uPlot.sync("time"); // one cursor for all charts of a page

export function draw(box, { data, lines, marks, format, limit }) {
  let chart = null;
  const make = () => {
    chart?.destroy();
    box.replaceChildren();
    const colour = (name) => getComputedStyle(box).getPropertyValue(`--${name}`).trim();
    chart = new uPlot(options(box, colour, { lines, marks, format, limit }), data, box);
  };
  make();
  const watch = new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: HEIGHT }));
  watch.observe(box);
  const theme = matchMedia("(prefers-color-scheme: dark)");
  theme.addEventListener("change", make);
  addEventListener("atoll:theme", make);
  return () => {
    theme.removeEventListener("change", make);
    removeEventListener("atoll:theme", make);
    watch.disconnect();
    chart.destroy();
  };
}

function options(box, colour, { lines, marks, format, limit }) {
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return {
    width: box.clientWidth || 300,
    height: HEIGHT,
    cursor: { sync: { key: shared.key }, drag: { x: false, y: false }, points: { size: 6 } },
    legend: { show: false },
    padding: [8, 8, 0, 0],
    scales: { y: { range: (chart, low, high) => [0, Math.max(high * 1.1, limit && high > limit / 2 ? limit * 1.1 : 0) || 1] } },
    axes: [
      { ...axis, grid: { show: false }, values: (chart, times) => times.map(clock(times)), space: 70, size: 28 },
      { ...axis, values: (chart, values) => values.map((value) => format(value)), size: 64 },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 1.5,
        dash: line.dash,
        fill: line.fill ? `color-mix(in srgb, ${colour(line.colour)} 14%, transparent)` : undefined,
        points: { show: false },
        spanGaps: false,
      })),
    ],
    hooks: { draw: [(chart) => drawMarks(chart, marks, limit, colour)], setCursor: [(chart) => tell(chart, box, lines, format)] },
  };
}

const clock = (times) => (time) => {
  const options = times.at(-1) - times[0] > 172_800 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  return new Date(time * 1000).toLocaleString("en-GB", options);
};

/** Deploys as vertical lines, a limit as a horizontal one. */
function drawMarks(chart, marks, limit, colour) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.setLineDash([4, 4]);
  ctx.lineWidth = 1;
  for (const { at } of marks) {
    const x = chart.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colour("accent");
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  if (limit && limit <= chart.scales.y.max) {
    const y = chart.valToPos(limit, "y", true);
    ctx.strokeStyle = colour("bad");
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

/** The values under the cursor, in a small window beside it. */
function tell(chart, box, lines, format) {
  let tip = box.querySelector(".tip");
  const { idx, left } = chart.cursor;
  if (idx === null || idx === undefined || left < 0) {
    tip?.remove();
    return;
  }
  if (!tip) {
    tip = document.createElement("div");
    tip.className = "tip";
    box.append(tip);
  }
  const rows = lines.map((line, number) => `${line.label} ${format(chart.data[number + 1][idx])}`);
  tip.textContent = [new Date(chart.data[0][idx] * 1000).toLocaleTimeString("en-GB"), ...rows].join("\n");
  const room = box.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(left + 76, room))}px`;
}
