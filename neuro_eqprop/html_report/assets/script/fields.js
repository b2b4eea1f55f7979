// Weights of hidden units as images, before and after training, on one scale.
const drawFields = () => {
  const held = data.fields;
  if (!held) return;
  const side = held.side, across = Math.min(8, held.units.length), most = Math.max(-held.images.low, held.images.high);
  ["before", "after"].forEach((when, which) => {
    const rows = held.images.rows[which].map((text) => decode(held.images, text));
    const tall = Math.ceil(rows.length / across) * (side + 1), grid = [...Array(tall)].map(() => Array(across * (side + 1)).fill(null));
    rows.forEach((image, k) => image.forEach((value, pixel) => {
      grid[Math.floor(k / across) * (side + 1) + Math.floor(pixel / side)][(k % across) * (side + 1) + (pixel % side)] = value;
    }));
    const hidden = { visible: false }, ends = ["#a8518a", colour("dark") === "1" ? "#10161c" : "#ffffff", "#007a5a"];
    draw(`fields-${when}`, [{
      type: "heatmap", z: grid, zmin: -most, zmax: most, hoverongaps: false, hovertemplate: "%{z:.3f}<extra></extra>",
      colorscale: ends.map((tint, k) => [k / 2, tint]), colorbar: { thickness: 10, tickfont: { color: colour("ink") } },
    }], layout(axis("", hidden), axis("", { ...hidden, autorange: "reversed", scaleanchor: "x" }), { margin: { l: 4, r: 4, t: 8, b: 8 } }));
  });
};
register(drawFields);
