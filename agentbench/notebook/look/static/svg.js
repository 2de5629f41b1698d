// Parses SVG as XML and removes everything active or remote, also in styles.
function readSvg(text, styled = false) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg" || root.querySelector("parsererror")) return null;
  for (const each of [root, ...root.querySelectorAll("*")]) {
    const acts = /^(script|foreignobject|iframe|object|embed|image|use|animate.*|set)$/i.test(each.localName);
    const styles = each.localName === "style" && (!styled || /@import|url\s*\(/i.test(each.textContent));
    if (acts || styles) each.remove();
    for (const { name, value } of [...each.attributes]) {
      if (/^on|(^|:)href$|^style$/i.test(name) || /url\s*\(\s*[^#\s]/i.test(value)) each.removeAttribute(name);
    }
  }
  return document.importNode(root, true);
}
