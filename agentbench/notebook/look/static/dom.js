// Elements for every panel. Texts become text nodes.
function node(tag, attributes = {}, ...content) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) el.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value);
  }
  el.append(...content); // strings become text nodes
  return el;
}

// An object as it displays itself: in a frame or an image, where no script runs and nothing is fetched.
function displayOf(caption, media, data, near) {
  if (media !== "text/html") {
    const text = media === "image/png" ? `;base64,${data}` : `,${encodeURIComponent(data)}`;
    return node("img", { alt: caption, src: `data:${media}${text}` });
  }
  const page = getComputedStyle(near);
  const allowed = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">";
  const style = `<style>body{margin:4px;color:${page.color};background:${page.backgroundColor};font:13px/1.4 system-ui,sans-serif}table{border-collapse:collapse;border:0}:is(td,th){padding:2px 8px;text-align:right;border:0}</style>`;
  return node("iframe", { sandbox: "", title: caption, srcdoc: allowed + style + data });
}
