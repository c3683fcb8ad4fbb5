// The browser's half of every view: it shows the HTML that Python renders, part by part, and
// sends back keys, clicks and control values.  It computes nothing.

const LEAVES = new Set(["Tab", "Escape"]); // these keys stay the notebook's
const KEYS = new Set([
  "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown",
]);

function controlOf(element) {
  // What a focused control is called, to find it again after its part was redrawn.
  for (const name of ["set", "press"]) {
    if (element?.dataset?.[name] !== undefined) {
      const value = element.dataset.value;
      const more = value === undefined ? "" : `[data-value="${CSS.escape(value)}"]`;
      return `[data-${name}="${CSS.escape(element.dataset[name])}"]${more}`;
    }
  }
  return null;
}

function replacePart(here, there) {
  const open = [...here.querySelectorAll("details")].map((d) => d.open);
  const scrolled = here.querySelector("[data-scroll]")?.scrollTop ?? 0;
  const focused = here.contains(document.activeElement) && here !== document.activeElement
    ? controlOf(document.activeElement) : null;
  here.innerHTML = there.innerHTML;
  here.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? d.open; });
  if (focused) here.querySelector(focused)?.focus({ preventScroll: true });
  const list = here.querySelector("[data-scroll]");
  if (list) {
    // Scroll the list, never the page.
    list.scrollTop = scrolled;
    const current = list.querySelector("[aria-current]");
    if (current) {
      const top = current.offsetTop - list.offsetTop;
      if (top < list.scrollTop || top + current.offsetHeight > list.scrollTop + list.clientHeight)
        list.scrollTop = top - list.clientHeight / 3;
    }
  }
}

function render({ model, el }) {
  const send = (content) => model.send(content);
  let waiting = 0; // timer of what Python computes once no key has come for a moment
  const shown = new Map(); // part name -> the HTML last put there

  function draw() {
    const page = document.createElement("template");
    page.innerHTML = model.get("html");
    const view = page.content.firstElementChild;
    if (!view) return;
    if (!el.querySelector(".se-view")) {
      for (const part of view.querySelectorAll("[data-part]"))
        shown.set(part.dataset.part, part.innerHTML);
      el.replaceChildren(view);
      for (const part of el.querySelectorAll("[data-part]"))
        if (part.querySelector("[data-scroll]")) replacePart(part, part.cloneNode(true));
    } else {
      for (const there of view.querySelectorAll("[data-part]")) {
        const name = there.dataset.part;
        if (shown.get(name) === there.innerHTML) continue;
        shown.set(name, there.innerHTML);
        const here = el.querySelector(`[data-part="${name}"]`);
        if (here) replacePart(here, there);
      }
    }
    clearTimeout(waiting);
    if (el.querySelector("[data-later]")) waiting = setTimeout(() => send({ later: true }), 300);
    const values = model.get("values");
    for (const control of el.querySelectorAll("input[data-set], select[data-set]")) {
      const value = values[control.dataset.set];
      if (value !== undefined && control !== document.activeElement) control.value = value;
      else if (value !== undefined && String(value) !== control.value && control.tagName !== "INPUT")
        control.value = value;
    }
  }

  const events = {
    keydown(event) {
      if (LEAVES.has(event.key)) return;
      event.stopPropagation();
      if (event.target.closest("input, select, textarea, summary")) return;
      if (!KEYS.has(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      send({ press: (event.shiftKey ? "Shift+" : "") + event.key });
    },
    keyup(event) { if (!LEAVES.has(event.key)) event.stopPropagation(); },
    keypress(event) { if (!LEAVES.has(event.key)) event.stopPropagation(); },
    input(event) {
      const control = event.target.closest("input[data-set], select[data-set]");
      if (control) send({ set: control.dataset.set, value: control.value });
    },
    click(event) {
      const copy = event.target.closest("[data-copy]");
      if (copy) return navigator.clipboard?.writeText(copy.dataset.copy);
      const press = event.target.closest("[data-press]");
      if (press) return send({ press: press.dataset.press });
      const choice = event.target.closest("[data-set][data-value]");
      if (choice) return send({ set: choice.dataset.set, value: choice.dataset.value });
      const grid = event.target.closest("svg[data-grid]");
      if (grid) {
        const size = Number(grid.dataset.grid);
        const matrix = grid.getScreenCTM();
        if (!matrix) return;
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
        send({ set: "cell", value: `${Math.floor(at.y / size)},${Math.floor(at.x / size)}` });
      }
    },
  };
  // JupyterLab looks at keys before they arrive here; this tells it which are not its own.
  const guard = (event) => {
    if (LEAVES.has(event.key)) el.removeAttribute("data-lm-suppress-shortcuts");
    else el.setAttribute("data-lm-suppress-shortcuts", "true");
  };
  el.setAttribute("data-lm-suppress-shortcuts", "true");
  window.addEventListener("keydown", guard, true);
  for (const [name, handler] of Object.entries(events)) el.addEventListener(name, handler);
  model.on("change:html change:values", draw);
  draw();
  return () => {
    clearTimeout(waiting);
    window.removeEventListener("keydown", guard, true);
    for (const [name, handler] of Object.entries(events)) el.removeEventListener(name, handler);
    model.off("change:html change:values", draw);
  };
}

export default { render };
