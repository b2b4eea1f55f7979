// Confusion matrix: the share of each true class that gets each answer.
const drawConfusion = () => {
  if (!byId("confusion") || !data.confusion) return;
  const rows = data.confusion, names = rows.map((_, k) => String(k));
  const shares = rows.map((row) => { const total = row.reduce((sum, value) => sum + value, 0) || 1; return row.map((value) => value / total); });
  const dark = colour("dark") === "1";
  draw("confusion", [{
    type: "heatmap", z: shares, x: names, y: names, zmin: 0, zmax: 1, showscale: false,
    // Even a single mistake has a colour of its own, in both modes.
    colorscale: dark ? [[0, "#10161c"], [0.001, "#28485e"], [1, "#56b4e9"]] : [[0, "#ffffff"], [0.001, "#dcecf6"], [1, "#0072b2"]],
    text: rows.map((row) => row.map((value) => value || "")), texttemplate: rows.length <= 20 ? "%{text}" : "",
    customdata: rows, hovertemplate: "%{y} answered as %{x}: %{customdata} samples<extra></extra>",
  }], layout(axis("answer", { type: "category" }), axis("class", { type: "category", autorange: "reversed" })));
};
register(drawConfusion);
