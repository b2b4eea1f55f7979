// Curves over the epochs, of one run or of several.
const several = data.learning.length > 1;
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
  const rows = Math.ceil(traces.length / 2), longest = Math.max(...data.learning.map((run) => run.epoch.length));
  // Epochs are integers, also on a short axis.
  draw(id, traces, layout(axis("epoch", longest < 10 ? { dtick: Math.ceil(longest / 5), tick0: 1 } : {}), axis(title, extra), { margin: { l: 50, r: 12, t: 22 + 19 * rows, b: 44 } }));
};
const drawLearning = () => {
  if (!byId("accuracy")) return;
  curves("accuracy", "accuracy", "", { tickformat: ".0%" });
  if (byId("loss")) curves("loss", "loss", "", { rangemode: "tozero" });
  if (byId("settle")) curves("settle", "settle", "steps", { rangemode: "tozero" });
  curves("spectral", "spectral", "norm", {});
};
register(drawLearning);
