// What the pages can do beyond being read: filter the matrix, save its view as CSV, compare two sides.
// Every page is complete without this file. It stores nothing and asks no other host.
(() => {
  "use strict";
  const base = new URL("..", document.currentScript.src);

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  };

  const select = (name, label, options, onchange) => {
    const made = element("select", { name, id: `pp-${name}`, onchange });
    for (const [value, said] of options) made.append(element("option", { value }, said));
    return [element("div", {}, element("label", { for: `pp-${name}` }, label), made), made];
  };

  // Shows in the address what differs from the default, and nothing else.
  const remember = (state) => {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) if (value) query.set(key, value);
    const said = query.toString();
    history.replaceState(null, "", location.pathname + (said ? `?${said}` : "") + location.hash);
  };

  const csvField = (text) => {
    const inert = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
  };

  const keys = { "no key": "none", key: "with", "key or not": "both" };

  function filterMatrix(table, box) {
    for (const cell of table.querySelectorAll("td")) cell.setAttribute("role", "cell");
    const columns = [...table.querySelectorAll("thead th[data-s]")].map((head) => ({
      head, scenario: head.dataset.s, group: head.dataset.g, question: head.textContent,
    }));
    const groups = [...table.querySelectorAll("thead .groups th")];
    const bodies = [...table.tBodies].map((body) => ({
      body, framework: body.dataset.f, name: body.dataset.name, version: body.dataset.v, line: body.rows[0].cells[0],
      rows: [...body.rows].slice(1).map((row) => ({
        row, mode: row.dataset.m,
        cells: [...row.cells].slice(1).map((cell) => ({
          cell,
          squares: [...cell.querySelectorAll(".q")].map((shown) => {
            const line = shown.closest("td > span") || shown;
            const label = line.querySelector("i");
            const key = label ? keys[label.textContent.trim()] || "calls" : "calls";
            const [kind, color] = [...shown.classList].filter((c) => c !== "q");
            const bold = shown.querySelector("b");
            const link = shown.closest("a");
            return {
              line, key, kind, color: color || kind, word: (bold || shown).textContent.trim(),
              text: shown.textContent.trim(), href: link ? link.href : "",
              stance: line.querySelector(".st") ? line.querySelector(".st").textContent : "",
            };
          }),
        })),
      })),
    }));
    const squares = bodies.flatMap((b) => b.rows.flatMap((r) => r.cells.flatMap((c) => c.squares)));
    const present = (pick) => [...new Set(squares.map(pick))];
    const kinds = {
      pass: "✓ passes", failing: "fails", some: "≈ fails in some trials", error: "! no verdict",
      unsupported: "– not supported", missing: "? not run",
    };
    const colors = present((s) => (["fail", "some"].includes(s.kind) ? s.color : "")).filter(Boolean).sort();
    const outcomes = [["", "any"], ...Object.entries(kinds).filter(([kind]) =>
      squares.some((s) => s.kind === kind || (kind === "failing" && s.kind === "fail"))), ...colors.map((c) => [c, c])];
    const modes = [...new Set(bodies.flatMap((b) => b.rows.map((r) => r.mode)))].sort();
    const fields = {
      framework: ["framework", [["", "all"], ...bodies.map((b) => [b.framework, b.name])]],
      mode: ["mode", [["", "all"], ...modes.map((m) => [m, m])]],
      group: ["questions", [["", "all"], ...groups.map((g) => [g.dataset.g, g.textContent.trim()])]],
      key: ["key", [["", "with and without"], ["none", "no key"], ["with", "key"]]],
      outcome: ["outcome", outcomes],
    };
    const query = new URLSearchParams(location.search);
    const controls = {};
    const form = element("form", { onsubmit: (event) => event.preventDefault(), "aria-label": "Filter the results" });
    for (const [name, [label, options]] of Object.entries(fields)) {
      const [holder, control] = select(name, label, options, apply);
      const asked = query.get(name);
      if (asked && options.some(([value]) => value === asked)) control.value = asked;
      controls[name] = control;
      form.append(holder);
    }
    const differences = element("input", { type: "checkbox", name: "differences", id: "pp-differences", onchange: apply });
    differences.checked = query.get("differences") === "1";
    form.append(element("div", {}, element("label", { for: "pp-differences" }, differences, " only differences")));
    form.append(element("button", { type: "button", onclick: reset }, "Show everything"));
    form.append(element("button", { type: "button", onclick: save }, "Save this view as CSV"));
    const status = element("output", { "aria-live": "polite", id: "pp-status" });
    form.append(status);
    box.append(form);
    box.hidden = false;
    for (const link of document.querySelectorAll(".skip-filter")) link.hidden = false;
    apply();

    function matches(square, want) {
      if (want.key && square.key !== "calls" && square.key !== "both" && square.key !== want.key) return false;
      if (!want.outcome) return true;
      if (want.outcome === "failing") return square.kind === "fail" || square.kind === "some";
      if (want.outcome in kinds) return square.kind === want.outcome;
      return square.color === want.outcome && (square.kind === "fail" || square.kind === "some");
    }

    function apply() {
      const began = performance.now();
      const want = Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value]));
      const shownRows = [];
      let all = 0;
      for (const { body, framework, rows } of bodies) {
        let any = false;
        for (const row of rows) {
          all += 1;
          let hits = 0;
          row.said = [];
          row.cells.forEach((cell, index) => {
            const visibleGroup = !want.group || columns[index].group === want.group;
            const said = [];
            for (const square of cell.squares) {
              square.on = matches(square, want);
              square.line.classList.toggle("off", !square.on);
              if (square.on) { said.push(`${square.key}${square.kind}${square.word}`); if (visibleGroup) hits += 1; }
            }
            row.said.push(said.join("|"));
          });
          row.on = (!want.framework || framework === want.framework) && (!want.mode || row.mode === want.mode) && hits > 0;
          row.row.classList.toggle("off", !row.on);
          if (row.on) { shownRows.push(row); any = true; }
        }
        body.classList.toggle("off", !any);
      }
      columns.forEach((column, index) => {
        const same = new Set(shownRows.map((row) => row.said[index])).size < 2;
        column.on = (!want.group || column.group === want.group) && !(differences.checked && same);
        column.head.classList.toggle("off", !column.on);
        for (const { rows } of bodies) for (const row of rows) row.cells[index].cell.classList.toggle("off", !column.on);
      });
      const count = columns.filter((c) => c.on).length;
      for (const group of groups) {
        const mine = columns.filter((c) => c.on && c.group === group.dataset.g).length;
        group.classList.toggle("off", mine === 0);
        group.colSpan = Math.max(1, mine);
      }
      for (const { line } of bodies) line.colSpan = 1 + count;
      status.textContent = shownRows.length === 0 ? "nothing matches"
        : count === 0 ? "no differences among these rows"
          : `${shownRows.length} of ${all} rows, ${count} of ${columns.length} questions`;
      remember({ ...want, differences: differences.checked ? "1" : "" });
      table.dataset.took = (performance.now() - began).toFixed(1);
    }

    function reset() {
      for (const control of Object.values(controls)) control.value = "";
      differences.checked = false;
      apply();
    }

    function save() {
      const lines = [["framework", "version", "mode", "scenario", "key", "outcome", "text", "docs", "evidence"]];
      for (const { name, version, rows } of bodies) {
        for (const row of rows.filter((r) => r.on)) {
          row.cells.forEach((cell, index) => {
            if (!columns[index].on) return;
            for (const s of cell.squares.filter((q) => q.on)) {
              lines.push([name, version, row.mode, columns[index].scenario, s.key, s.kind, s.text, s.stance, s.href]);
            }
          });
        }
      }
      const text = lines.map((line) => line.map((field) => csvField(field || "")).join(",")).join("\n") + "\n";
      const link = element("a", { download: "plugpull-view.csv", href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
      document.body.append(link);
      link.click();
      link.remove();
    }
  }

  async function compareSides(box) {
    const answer = await fetch(new URL("data/cells.json", base));
    const data = await answer.json();
    if (data.sides.length < 2) return;
    const id = (side) => `${side.name}@${side.version}/${side.mode}`;
    const options = data.sides.map((side) => [id(side), `${side.name} ${side.version} ${side.mode}`]);
    const query = new URLSearchParams(location.search);
    const pick = (name, fallback) => (options.some(([value]) => value === query.get(name)) ? query.get(name) : fallback);
    const [leftBox, left] = select("left", "left", options, draw);
    const [rightBox, right] = select("right", "right", options, draw);
    left.value = pick("left", options[0][0]);
    right.value = pick("right", options[1][0]);
    const only = element("input", { type: "checkbox", id: "pp-only", onchange: draw });
    only.checked = query.get("differences") === "1";
    const form = element("form", { onsubmit: (event) => event.preventDefault(), "aria-label": "Choose two sides" });
    form.append(leftBox, rightBox, element("div", {}, element("label", { for: "pp-only" }, only, " only differences")));
    const table = element("table", { class: "points", id: "pp-compared" });
    const holder = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Side by side" }, table);
    box.append(form, holder);
    box.hidden = false;
    draw();

    function squaresOf(squares) {
      const cell = element("td");
      for (const [label, kind, color, word, number, href] of squares) {
        const line = element("span");
        if (label) line.append(element("i", {}, label), " ");
        const shown = element(href ? "a" : "span", { class: `q ${kind} ${color}` }, element("b", {}, word), ` ${number}`);
        if (href) shown.setAttribute("href", new URL(href, base).href);
        line.append(shown);
        cell.append(line);
      }
      return cell;
    }

    function draw() {
      const a = data.sides.find((side) => id(side) === left.value);
      const b = data.sides.find((side) => id(side) === right.value);
      const head = element("tr", {}, element("th", { scope: "col" }, "scenario"),
        element("th", { scope: "col" }, options.find(([v]) => v === left.value)[1]),
        element("th", { scope: "col" }, options.find(([v]) => v === right.value)[1]));
      const said = (squares) => squares.map((s) => [s[0], s[1], s[3]].join()).join("|");
      const body = element("tbody");
      for (const name of data.columns) {
        if (only.checked && said(a.squares[name]) === said(b.squares[name])) continue;
        body.append(element("tr", {}, element("th", { scope: "row" }, name), squaresOf(a.squares[name]), squaresOf(b.squares[name])));
      }
      if (!body.rows.length) body.append(element("tr", {}, element("td", { colspan: "3" }, "no differences")));
      table.replaceChildren(element("thead", {}, head), body);
      remember({
        left: left.value === options[0][0] ? "" : left.value, right: right.value === options[1][0] ? "" : right.value,
        differences: only.checked ? "1" : "",
      });
    }
  }

  // The theme's search is a dialog without a name.
  const search = document.querySelector(".md-search[role=dialog]");
  if (search) search.setAttribute("aria-label", "Search");
  const table = document.querySelector("table.matrix");
  const box = document.getElementById("filter");
  if (table && box) filterMatrix(table, box);
  const chooser = document.getElementById("chooser");
  if (chooser) compareSides(chooser).catch(() => { chooser.hidden = true; });
})();
