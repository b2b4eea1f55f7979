// Energy while settling: traces of different lengths share an axis in percent of a sample.
const drawEnergyCourse = () => {
  if (!byId("energy-course") || !data.energyCourse) return;
  const tints = palette();
  const traces = data.energyCourse.map((held, k) => ({
    x: held.steps.map((step) => (100 * step) / held.of), y: held.y, mode: "lines", name: plain(held.name), hovertemplate: "%{x:.0f} %: %{y:.4f}",
    line: { color: tints[k % tints.length], width: 2, dash: held.spikes ? "solid" : "dot" },
  }));
  const { phases, of } = data.energyCourse[0], percent = (step) => (100 * step) / of;
  const lines = phases.slice(1).map((phase) => ({
    type: "line", xref: "x", yref: "paper", x0: percent(phase.start), x1: percent(phase.start), y0: 0, y1: 1, line: { color: colour("line"), width: 1 },
  }));
  const names = phases.map((phase) => ({
    xref: "x", yref: "paper", x: percent((phase.start + phase.stop) / 2), y: 1, yanchor: "bottom", showarrow: false, text: plain(phase.name),
    font: { size: 12, color: colour("soft") },
  }));
  draw("energy-course", traces, layout(axis("percent of a sample", { range: [0, 100] }), axis("E"), {
    shapes: lines, annotations: names, margin: { l: 56, r: 12, t: 40 + 19 * Math.ceil(traces.length / 2), b: 44 },
    legend: { orientation: "h", y: 1.12, yanchor: "bottom", x: 0 },
  }));
};
register(drawEnergyCourse);
