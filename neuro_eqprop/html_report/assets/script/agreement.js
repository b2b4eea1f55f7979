// Scatter plot of firing rates against rates.
const drawScatter = () => {
  const held = data.scatter[byId("simulator") ? byId("simulator").value : ""];
  if (!byId("scatter") || !held) return draw("scatter", [], layout(axis("rate"), axis("firing rate")));
  const tints = palette();
  let low = 0, high = 1;
  const traces = Object.entries(held[byId("phase").value] || {}).map(([layer, both], k) => {
    const [x, y] = both.rows.map((row) => decode(both, row));
    low = Math.min(low, both.low);
    high = Math.max(high, both.high);
    return {
      x, y, name: plain(layer), mode: "markers", hovertemplate: "rate %{x:.3f}, firing %{y:.3f}",
      marker: { size: 6, opacity: 0.55, color: tints[(k + 1) % tints.length], symbol: k },
    };
  });
  traces.unshift({ x: [low, high], y: [low, high], mode: "lines", hoverinfo: "skip", showlegend: false, line: { color: colour("soft"), width: 1, dash: "dot" } });
  caption("scatter", `Each point a unit in a sample, ${traceOf(byId("simulator").value).on}`);
  return draw("scatter", traces, layout(axis("rate"), axis("firing rate"), { margin: { l: 50, r: 12, t: 40, b: 44 } }));
};
const fillAgreement = () => {
  const phases = Object.values(data.scatter)[0];
  if (!byId("phase") || !phases) return;
  Object.keys(phases).forEach((name) => option(byId("phase"), name, name));
  ["phase", "simulator"].forEach((id) => listen(id, drawScatter));
  // Follow the phase selected above; the points of all phases together are not drawn.
  listen("zoom", () => { const phase = phaseNow(chosen("left") || chosen("simulator")); if (phase) { byId("phase").value = phase.name; drawScatter(); } });
};
register(drawScatter, fillAgreement);
