// Curves over the epochs, of one run or of several.
const several = data.learning.length > 1;
// Ticks at integers only, since epochs are integers.
const epochs = () => {
  const longest = Math.max(...data.learning.map((run) => run.epoch.length));
  return axis("epoch", longest < 10 ? { dtick: Math.ceil(longest / 5), tick0: 1 } : {});
};
const curves = (id, key, title, extra) => {
  const colours = palette(), traces = [];
  data.learning.forEach((run, r) => {
    const named = Object.entries(run[key]).filter(([name]) => !several || key !== "accuracy" || name === "test");
    named.forEach(([name, y], k) => {
      const tint = several ? r : k;
      traces.push({
        x: run.epoch, y, mode: "lines+markers", connectgaps: false,
        name: plain(several ? (named.length > 1 ? `${run.run}, ${name}` : run.run) : name),
        line: { color: colours[tint % colours.length], width: 2, dash: ["solid", "dot", "dash", "dashdot"][several ? k % 4 : k < colours.length ? 0 : 1] },
        marker: { size: 5, symbol: several ? r : k },
      });
    });
  });
  const rows = Math.ceil(traces.length / 2);
  draw(id, traces, layout(epochs(), axis(title, extra), { margin: { l: 50, r: 12, t: 22 + 19 * rows, b: 44 } }));
};
// Median and a band between the outer quantiles; outlines instead of bands for several runs.
const drawWeights = () => {
  const colours = palette(), traces = [];
  data.learning.forEach((run, r) => Object.entries(run.weights).forEach(([name, [low, middle, high]], k) => {
    const tint = colours[(several ? r : k) % colours.length], dash = ["solid", "dot", "dash", "dashdot"][several ? k % 4 : 0];
    const label = several ? `${run.run}, ${name}` : name, group = `${r}-${k}`;
    const edge = { x: run.epoch, mode: "lines", legendgroup: group, showlegend: false, line: { color: tint, width: 1, dash } };
    traces.push({ ...edge, y: low, name: plain(`${label}, 5 %`) });
    traces.push({ ...edge, y: high, name: plain(`${label}, 95 %`), ...(several ? {} : { fill: "tonexty", fillcolor: `${tint}26` }) });
    traces.push({ ...edge, y: middle, mode: "lines+markers", name: plain(label), showlegend: true, line: { color: tint, width: 2, dash }, marker: { size: 5, symbol: k } });
  }));
  const rows = Math.ceil(traces.length / 6);
  draw("weight-quantiles", traces, layout(epochs(), axis("weight", {}), { margin: { l: 50, r: 12, t: 22 + 19 * rows, b: 44 } }));
};
const drawLearning = () => {
  if (!byId("accuracy")) return;
  curves("accuracy", "accuracy", "", { tickformat: ".0%" });
  if (byId("loss")) curves("loss", "loss", "", { rangemode: "tozero" });
  if (byId("settle")) curves("settle", "settle", "steps", { rangemode: "tozero" });
  curves("spectral", "spectral", "norm", {});
  if (byId("weight-quantiles")) drawWeights();
};
register(drawLearning);
