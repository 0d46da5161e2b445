// Elements made of parts. Text enters only as text nodes: data never becomes markup.

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

/** A button. Its name is its visible text, so that a user of voice control can say it; a symbol needs another name. */
export function button(text: string, hint: string, act: () => void): HTMLButtonElement {
  const sign = text !== "" && !/[\p{L}\p{N}]/u.test(text);
  const made = element("button", { type: "button", title: hint, ...(sign && { "aria-label": hint }) }, text);
  made.addEventListener("click", act);
  return made;
}

/** A button that copies. If the page may not use the clipboard, as from disk, it selects the text. */
export function copier(what: string, hint: string, text: () => string): HTMLButtonElement {
  const made = button(`copy ${what}`, hint, () => {
    const done = (): void => {
      made.textContent = "copied";
      setTimeout(() => (made.textContent = `copy ${what}`), 1500);
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

/** A canvas as large as its place, in device pixels. */
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

/** The part of a text that fits. */
export function fit(draw: CanvasRenderingContext2D, text: string, room: number): string {
  if (draw.measureText(text).width <= room) return text;
  let kept = text.length;
  while (kept > 1 && draw.measureText(`${text.slice(0, kept)}\u2026`).width > room) kept -= 1;
  return `${text.slice(0, kept)}\u2026`;
}

/** The part of a text that fits; nothing if that would be meaningless. */
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
