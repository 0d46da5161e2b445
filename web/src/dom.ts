// Elements made of parts. Text enters as text nodes alone: there is no markup from data anywhere.

type Child = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function button(text: string, label: string, act: () => void): HTMLButtonElement {
  const made = element("button", { type: "button", title: label, "aria-label": label }, text);
  made.addEventListener("click", act);
  return made;
}

/** A button that copies; pages from disk may not be let at the clipboard, then the text is selected. */
export function copier(what: string, text: () => string): HTMLButtonElement {
  const made = button("copy", `copy ${what}`, () => {
    const done = (): void => {
      made.textContent = "copied";
      setTimeout(() => (made.textContent = "copy"), 1500);
    };
    const byHand = (): void => {
      const field = element("textarea", { readonly: "", "aria-hidden": "true" });
      field.value = text();
      made.after(field);
      field.select();
      if (document.execCommand("copy")) done();
      field.remove();
    };
    if (navigator.clipboard === undefined) byHand();
    else navigator.clipboard.writeText(text()).then(done, byHand);
  });
  made.className = "copy";
  return made;
}

/** A canvas as large as its place, in the screen's own pixels. */
export function fitted(canvas: HTMLCanvasElement, height: number): CanvasRenderingContext2D | null {
  const width = canvas.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.height = `${height}px`;
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

/** As much of a text as has room. */
export function fit(draw: CanvasRenderingContext2D, text: string, room: number): string {
  if (draw.measureText(text).width <= room) return text;
  let kept = text.length;
  while (kept > 1 && draw.measureText(`${text.slice(0, kept)}\u2026`).width > room) kept -= 1;
  return `${text.slice(0, kept)}\u2026`;
}

/** As much of a text as fits; nothing where that would say nothing. */
export function cut(draw: CanvasRenderingContext2D, text: string, room: number): string {
  if (room < 14) return "";
  if (draw.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (draw.measureText(`${text.slice(0, middle)}\u2026`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low < 3 ? "" : `${text.slice(0, low)}\u2026`;
}
