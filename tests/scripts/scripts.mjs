// Names out of the scripts of the panels, which have no exports: the files of one module, in the order in which a page gets them.
import { readFileSync } from "node:fs";

const NOTEBOOK = new URL("../../agentbench/notebook/", import.meta.url);

// `names("itemAt", ["look/static/dom.js"], {document})`; `around` holds what a browser would have.
export function names(wanted, files, around = {}) {
  const text = files.map((file) => readFileSync(new URL(file, NOTEBOOK), "utf8")).join("\n").replaceAll(/^export .*$/gm, "");
  return new Function(...Object.keys(around), `${text}\nreturn { ${wanted} };`)(...Object.values(around));
}

// The least of an element that building blocks of panels need.
export class Element {
  constructor(tag) {
    [this.tag, this.attributes, this.children, this.heard] = [tag, {}, [], {}];
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }

  getAttribute(name) {
    return this.attributes[name] ?? null;
  }

  addEventListener(name, listener) {
    this.heard[name] = listener;
  }

  append(...content) {
    this.children.push(...content);
    for (const each of content) if (each instanceof Element) each.remove = () => this.drop(each);
  }

  drop(el) {
    this.children = this.children.filter((each) => each !== el);
  }

  insertBefore(el, before) {
    this.children = this.children.filter((each) => each !== el);
    this.children.splice(before ? this.children.indexOf(before) : this.children.length, 0, el);
    el.holder = this;
  }

  get lastElementChild() {
    return Object.assign(this.children.at(-1), { remove: () => this.children.pop() });
  }
}

export const page = { createElement: (tag) => new Element(tag) };
