/**
 * Parses the XML in responses of S3: elements and text. Refuses other features of XML and malformed
 * documents.
 */

export interface XmlElement {
  readonly name: string;
  /** Text of the element without the text of its children. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

/** Responses of S3 are three levels deep. */
const MAX_DEPTH = 16;

const TOKEN =
  /<\?[^>]*\?>|<!--[\s\S]*?-->|<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

interface Open {
  readonly name: string;
  text: string;
  readonly children: Open[];
}

/**
 * Parses a document and returns its root element.
 * @throws SyntaxError
 */
export function parseXml(xml: string): XmlElement {
  const document: Open = { name: "", text: "", children: [] };
  const path = [document];
  for (let at = 0; at < xml.length; ) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(xml);
    if (token === null) throw new SyntaxError(`unexpected XML at character ${at}`);
    at = TOKEN.lastIndex;
    take(token, path);
  }
  const [root, second] = document.children;
  if (path.length !== 1 || root === undefined || second !== undefined || document.text.trim() !== "") {
    throw new SyntaxError("the XML document is incomplete");
  }
  return root;
}

function take([, closing, name, , empty, text]: RegExpExecArray, path: Open[]): void {
  const inside = path.at(-1) as Open;
  if (text !== undefined) inside.text += unescaped(text);
  else if (closing === "/") {
    if (path.length === 1 || inside.name !== name) throw new SyntaxError(`</${name}> has no start tag`);
    path.pop();
  } else if (name !== undefined) {
    const element: Open = { name, text: "", children: [] };
    inside.children.push(element);
    if (empty === "/") return;
    if (path.length > MAX_DEPTH) throw new SyntaxError("the XML is too deep");
    path.push(element);
  }
}

function unescaped(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w+));|&/gi,
    (all, hex?: string, decimal?: string, name = "") => {
      const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      const character = point <= 0x10ffff ? String.fromCodePoint(point) : ENTITIES[name];
      if (character === undefined) throw new SyntaxError(`${all} is not an entity`);
      return character;
    },
  );
}

export const childrenOf = (element: XmlElement, name: string): readonly XmlElement[] =>
  element.children.filter((child) => child.name === name);

/** Returns the text of the first child with this name. */
export const textOf = (element: XmlElement, name: string): string | undefined => childrenOf(element, name)[0]?.text;

/** Escapes a text for XML. */
export const escaped = (text: string): string =>
  text.replace(/[&<>"\r\n\t]/g, (character) => `&#${character.charCodeAt(0)};`);
