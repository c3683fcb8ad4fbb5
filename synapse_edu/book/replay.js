// Views without a kernel: every state that the keys and controls reach was recorded when the book
// was built, and this plays the part of the kernel.  It follows `render` of views/view.js.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function recordedModel(recording) {
  // What `render` knows of anywidget's model: get, send, on, off.
  let at = 0;
  const listeners = new Set();
  const name = (content) =>
    content.press !== undefined ? `press ${content.press}` : `set ${content.set} ${content.value}`;
  return {
    get: (key) => (key === "html" ? recording.html[at] : recording.values[at]),
    send(content) {
      const next = recording.moves[at][name(content)];
      if (next === undefined) return;
      at = next;
      listeners.forEach((draw) => draw());
    },
    on: (_, draw) => listeners.add(draw),
    off: (_, draw) => listeners.delete(draw),
  };
}

for (const place of document.querySelectorAll(".se-live")) {
  const data = place.querySelector("script[type='application/x-recording']");
  if (!data || !("DecompressionStream" in window)) continue; // the static picture stays
  unpack(data.textContent.trim()).then((recording) => {
    const el = document.createElement("div");
    place.replaceChildren(...place.querySelectorAll("style"), el);
    render({ model: recordedModel(recording), el });
  });
}
