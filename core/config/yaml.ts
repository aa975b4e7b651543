/** YAML, and places in it; JSON is YAML, too. Loaded with the first such text: see `text.ts`. */
import { isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import { TextError, type TextPlace } from "./text_error.ts";

/** Where an option stands in a text, by its path: `http_ports`, `hosts.www.example.org.http_files_dir`. */
export function placeIn(text: string, path: string): TextPlace | undefined {
  const lines = new LineCounter();
  let { contents: node } = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  let at: number | undefined;
  for (let rest = path; rest !== "" && isCollection(node); ) {
    // The longest name first: names of hosts have points in them.
    const found = entriesOf(node)
      .filter(([name]) => rest === name || rest.startsWith(`${name}.`) || rest.startsWith(`${name}[`))
      .toSorted(([one], [other]) => other.length - one.length)[0];
    if (found === undefined) break;
    const [name, key, value] = found;
    at = key ?? at;
    node = value as typeof node;
    rest = rest.slice(name.length).replace(/^[.[]/, "").replace("]", "");
  }
  if (at === undefined) return undefined;
  const { line, col } = lines.linePos(at);
  return { line, column: col };
}

/** Name, place and value of each entry. */
function entriesOf(node: unknown): [string, number | undefined, unknown][] {
  if (isMap(node)) {
    return node.items.flatMap(({ key, value }) =>
      isScalar(key) ? [[String(key.value), key.range?.[0], value] as [string, number | undefined, unknown]] : [],
    );
  }
  if (!isSeq(node)) return [];
  return node.items.map((item, at) => [String(at), isScalar(item) ? item.range?.[0] : undefined, item]);
}

/** @throws {TextError} */
export function parseYaml(content: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(content, { lineCounter: lines, prettyErrors: false });
  const wrong = (at: number, what: string) => {
    const { line, col } = lines.linePos(at);
    return new TextError(line, col, what);
  };
  const [error] = document.errors;
  if (error !== undefined) throw wrong(error.pos[0], error.message);
  visit(document, {
    Alias(_key, alias) {
      // The parser would tell the text, which may be a token.
      if (alias.resolve(document) !== undefined) return;
      throw wrong(alias.range?.[0] ?? 0, "a value that begins with * refers to an anchor, which is missing: quote it");
    },
  });
  return document.toJS();
}
