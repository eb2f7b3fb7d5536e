"use strict";
// Shows the figures under the pointer. Without this the plots are all there.
(() => {
  const binary = ["B", "KiB", "MiB", "GiB", "TiB"];
  const digits = v => String(Number(v.toPrecision(3)));
  const words = (v, unit) => {
    if (v === null) return "not known";
    if (unit === "share") return digits(100 * v) + "%";
    if (unit !== "bytes") return digits(v) + unit;
    let i = 0;
    for (; v >= 999.5 && i < binary.length - 1; i++) v /= 1024;
    return digits(v) + " " + binary[i];
  };
  for (const figure of document.querySelectorAll("figure")) {
    const area = figure.querySelector(".area"), cursor = figure.querySelector(".cursor"), out = figure.querySelector("output");
    let data;
    const show = event => {
      data ??= JSON.parse(figure.querySelector("script").textContent);
      const n = data.s.length ? data.s[0].v.length : 0, box = area.getBoundingClientRect();
      const at = (event.clientX - box.left) / box.width, i = Math.floor(at * n);
      if (i < 0 || i >= n) return hide();
      cursor.hidden = false;
      cursor.style.left = 100 * at + "%";
      const time = new Date(data.t + i * data.w).toISOString().slice(11, 19);
      out.textContent = time + "  " + data.s.map(s => s.n + " " + words(s.v[i], data.u)).join(", ");
    };
    const hide = () => { cursor.hidden = true; out.textContent = ""; };
    area.addEventListener("pointermove", show);
    area.addEventListener("pointerdown", show);
    area.addEventListener("pointerleave", hide);
    for (const act of figure.querySelectorAll(".acts .act")) {
      act.addEventListener("click", () => { out.textContent = act.title.replaceAll("\n", "; "); });
      act.addEventListener("focus", () => { out.textContent = act.title.replaceAll("\n", "; "); });
    }
  }
})();
