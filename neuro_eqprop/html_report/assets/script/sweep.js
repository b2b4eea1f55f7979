"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const ink = getComputedStyle(document.body).color;
  for (const [id, figure] of Object.entries(figures)) {
    const layout = {...figure.layout, font: {color: ink}, paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)"};
    Plotly.newPlot(id, figure.data, layout, {responsive: true, displayModeBar: false});
  }
})();
