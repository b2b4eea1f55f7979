// Curves over the epochs, of one run or of several.
const learned = data.learning || [], several = learned.length > 1;
// A metric over the epochs: a missing value leaves a gap.
const column = (run, key) => run.rows.map((row) => row[key]);
const namesIn = (run, key) => [...new Set(column(run, key).flatMap((held) => Object.keys(held || {})))];
const byName = (run, key) => namesIn(run, key).map((name) => [name, column(run, key).map((held) => (held ? held[name] : null))]);
const CURVES = {
  accuracy: (run) => [["training", column(run, "train_accuracy")], ["test", column(run, "test_accuracy")]],
  loss: (run) => (column(run, "loss").some((value) => value) ? [["training", column(run, "loss")]] : []),
  settle: (run) => byName(run, "settle_steps"),
  spectral: (run) => byName(run, "spectral"),
};
// Ticks at integers only, since epochs are integers.
const epochs = () => {
  const longest = Math.max(...learned.map((run) => run.rows.length));
  return axis("epoch", longest < 10 ? { dtick: Math.ceil(longest / 5), tick0: 1 } : {});
};
const curves = (id, key, title, extra) => {
  const colours = palette(), traces = [];
  learned.forEach((run, r) => {
    const named = CURVES[key](run).filter(([name]) => !several || key !== "accuracy" || name === "test");
    named.forEach(([name, y], k) => {
      const tint = several ? r : k;
      traces.push({
        x: column(run, "epoch"), y, mode: "lines+markers", connectgaps: false,
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
  learned.forEach((run, r) => byName(run, "weight_quantiles").forEach(([name, quantiles], k) => {
    const [low, middle, high] = [0, 2, 4].map((place) => quantiles.map((held) => (held ? held[place] : null)));
    const tint = colours[(several ? r : k) % colours.length], dash = ["solid", "dot", "dash", "dashdot"][several ? k % 4 : 0];
    const label = several ? `${run.run}, ${name}` : name, group = `${r}-${k}`;
    const edge = { x: column(run, "epoch"), mode: "lines", legendgroup: group, showlegend: false, line: { color: tint, width: 1, dash } };
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
