// An object's own display, in a frame or an image, where no script runs and nothing is fetched.
function displayOf(caption, media, data) {
  if (media !== "text/html") {
    const text = media === "image/png" ? `;base64,${data}` : `,${encodeURIComponent(data)}`;
    return node("img", { alt: caption, src: `data:${media}${text}` });
  }
  const allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  const rules = `body{margin:4px;font:13px/1.4 system-ui,sans-serif}table{border-collapse:collapse;border:0}
    :is(td,th){padding:2px 8px;text-align:right;border:0}`;
  // Uses the text colour of the page and the height of the content; transparent if the colour schemes match.
  // A theme can change before the frame has loaded, which paints it.
  const paint = () => frame.contentDocument?.body?.style.setProperty("color", getComputedStyle(frame).color);
  const fit = ([{ target }]) => requestAnimationFrame(() => { frame.style.height = `${target.offsetHeight + 4}px`; });
  const onload = () => {
    paint();
    new ResizeObserver(fit).observe(frame.contentDocument.documentElement);
  };
  const policy = `<meta http-equiv='Content-Security-Policy' content="${allowed}">`;
  const frame = node("iframe", {
    sandbox: "allow-same-origin", title: caption, style: "color-scheme: light", onload,
    srcdoc: `${policy}<style>${rules}</style>${data}`,
  });
  const theme = new MutationObserver(() => (frame.isConnected ? paint() : theme.disconnect()));
  theme.observe(document.body, { attributeFilter: ["class", "data-jp-theme-light"] });
  return frame;
}
