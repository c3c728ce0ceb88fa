// A lab's drawing as a picture: what is on screen, written anew as an SVG that needs no page.

// Gives what became of it, in words.
export const copyPicture = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const INK = [
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
    "stroke-linecap", "opacity", "font-size", "font-weight", "text-anchor", "paint-order",
  ];
  const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  // Browsers tell a mixed color as "color(srgb 0.1 0.2 0.3)", which drawing programs do not know.
  const plain = (value) => value.replace(/color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)( \/ [\d.]+)?\)/g,
    (_, r, g, b, alpha) => `rgba(${[r, g, b].map((x) => Math.round(255 * x))}, ${alpha?.slice(3) ?? 1})`);
  const colors = (value) => (plain(value).match(/rgba?\([^)]*\)/g) || [])
    .filter((color) => !/, 0\)$/.test(color));
  const inside = (box, home) => ({ x: box.x - home.x, y: box.y - home.y, w: box.width, h: box.height });
  const rect = ({ x, y, w, h }, more) => `<rect x="${x}" y="${y}" width="${w}" height="${h}" ${more}/>`;

  // What a cell has behind its number: a color, a bar as long as its share, stripes or a cross.
  const ground = (cell, style, box) => {
    const parts = [];
    const radius = parseFloat(style.borderTopLeftRadius) || 0;
    const [fill] = colors(style.backgroundColor);
    if (fill) parts.push(rect(box, `rx="${radius}" fill="${fill}"`));
    if (cell.matches(".al-bars td")) {
      const share = parseFloat(cell.style.getPropertyValue("--tone")) / 100 || 0;
      const half = cell.matches(".al-signed td");
      const [bar, empty] = [colors(style.backgroundImage)[0], colors(style.backgroundImage).at(-1)];
      if (!half) parts.push(rect(box, `fill="${empty}"`));
      const wide = Math.abs(share) * box.w * (half ? 0.5 : 1);
      const x = half ? box.x + box.w / 2 - (share < 0 ? wide : 0) : box.x;
      parts.push(rect({ ...box, x, w: wide }, `fill="${bar}"`));
    }
    const line = (x1, y1, x2, y2) => `<path d="M${x1} ${y1}L${x2} ${y2}" stroke="${colors(style.color)[0]}" stroke-opacity="0.4"/>`;
    const { x, y, w, h } = box;
    if (cell.matches(".al-out")) parts.push(line(x, y, x + w, y + h), line(x + w, y, x, y + h));
    if (cell.matches(".al-hidden")) {
      for (const part of [0.25, 0.5, 0.75, 1]) parts.push(line(x, y + h * part, x + w * part, y));
    }
    const ring = /(rgba?\([^)]*\)|color\([^)]*\)) 0px 0px 0px ([\d.]+)px inset/.exec(style.boxShadow);
    const edge = parseFloat(style.borderTopWidth) || (ring ? parseFloat(ring[2]) : 0);
    const [stroke] = colors(ring?.[1] || style.borderTopColor);
    if (edge && stroke) {
      const thin = { x: x + edge / 2, y: y + edge / 2, w: w - edge, h: h - edge };
      parts.push(rect(thin, `rx="${radius}" fill="none" stroke="${stroke}" stroke-width="${edge}"`));
    }
    return parts;
  };

  // A text as it is broken into lines on screen; names of columns stand upright.
  const words = (node, style, home) => {
    const look = `font-size="${style.fontSize}" font-weight="${style.fontWeight}" ` +
      `font-family="${escape(style.fontFamily)}" fill="${colors(style.color)[0]}"`;
    const range = document.createRange();
    range.selectNodeContents(node);
    const size = parseFloat(style.fontSize);
    if (!size) return [];
    if (style.writingMode !== "horizontal-tb") {
      const { x, y, w, h } = inside(range.getBoundingClientRect(), home);
      const at = `translate(${x + w / 2 + size / 3} ${y + h}) rotate(-90)`;
      return [`<text transform="${at}" ${look}>${escape(node.data)}</text>`];
    }
    const lines = [];
    for (const { 0: word, index } of node.data.matchAll(/\S+\s*/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const { x, y, h } = inside(range.getClientRects()[0] ?? range.getBoundingClientRect(), home);
      const last = lines.at(-1);
      if (last && Math.abs(last.y - y) < 2) last.text += word;
      else lines.push({ x, y, h, text: word });
    }
    return lines.map(({ x, y, h, text }) =>
      `<text x="${x}" y="${y + h / 2 + size / 3}" ${look}>${escape(text)}</text>`);
  };

  const drawn = (element, home) => {
    const copy = element.cloneNode(true);
    const own = [element, ...element.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((part, i) => {
      const style = getComputedStyle(own[i]);
      if (style.display === "none") return part.remove();
      for (const name of INK) part.setAttribute(name, plain(style.getPropertyValue(name)));
      return part.removeAttribute("style");
    });
    const { x, y, w, h } = inside(element.getBoundingClientRect(), home);
    for (const [name, value] of Object.entries({ x, y, width: w, height: h, overflow: "visible" })) {
      copy.setAttribute(name, value);
    }
    return new XMLSerializer().serializeToString(copy);
  };

  const walk = (node, home) => {
    if (node.nodeType === Node.TEXT_NODE) {
      return node.data.trim() ? words(node, getComputedStyle(node.parentElement), home) : [];
    }
    if (node.nodeType !== Node.ELEMENT_NODE || !node.checkVisibility({ visibilityProperty: true })) return [];
    if (node.namespaceURI === NS) return [drawn(node, home)];
    if (node.matches("select, input")) return [];
    const style = getComputedStyle(node);
    return [...ground(node, style, inside(node.getBoundingClientRect(), home)),
      ...[...node.childNodes].flatMap((child) => walk(child, home))];
  };

  // The picture of a lab: its title, what it draws, what it says of it, and where it is from.
  const picture = (root, { title, place }) => {
    const [stages, summary] = [".al-draws", ".al-summary"].map((part) => root.querySelector(part));
    const box = stages.getBoundingClientRect();
    const [pad, head] = [16, 28];
    const style = getComputedStyle(root);
    const [ink] = colors(style.color);
    const page = colors(getComputedStyle(document.body).backgroundColor)[0] || "#fff";
    const size = { width: Math.ceil(box.width) + 2 * pad, height: stages.scrollHeight + head + 3 * pad };
    const lines = [];
    const most = size.width / 7;
    for (const word of summary.textContent.split(" ")) {
      const last = lines.at(-1);
      if (last && last.length + word.length < most) lines[lines.length - 1] += ` ${word}`;
      else lines.push(word);
    }
    lines.push(place.replace(/^\w+:\/\//, ""));
    const text = (told, y, more = "") =>
      `<text x="${pad}" y="${y}" font-family="sans-serif" font-size="13" fill="${ink}" ${more}>${escape(told)}</text>`;
    const low = size.height;
    size.height += 18 * lines.length;
    const home = { x: box.x - pad, y: box.y - head - pad };
    return { ...size, svg: `<svg xmlns="${NS}" width="${size.width}" height="${size.height}" ` +
      `viewBox="0 0 ${size.width} ${size.height}">${rect({ x: 0, y: 0, w: size.width, h: size.height }, `fill="${page}"`)}` +
      text(title, pad + 10, 'font-weight="bold"') + walk(stages, home).join("") +
      lines.map((line, i) => text(line, low + 18 * i, i === lines.length - 1 ? 'opacity="0.75"' : "")).join("") + "</svg>" };
  };

  // On the clipboard; where the browser does not let it there, in a file.
  return async (root, told) => {
    const { svg, width, height } = picture(root, told);
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done));
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
      return "Image copied.";
    } catch {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${told.title.toLowerCase().replaceAll(" ", "-")}.png`;
      link.click();
      return "Image saved.";
    }
  };
})();
