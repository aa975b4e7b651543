/**
 * Parses YAML and finds positions in it; JSON is YAML, too. It is loaded with the first such text:
 * see `text.ts`.
 */
import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  Scalar,
  visit,
  type YAMLMap,
} from "yaml";
import { TextError, type TextPosition } from "./text_error.ts";
import { MERGE, merged } from "./yaml_merge.ts";

/**
 * Returns the position of an option in a text, by its path: `http_ports`,
 * `hosts.www.example.org.notes_folder`.
 */
export function positionIn(text: string, path: string): TextPosition | undefined {
  const lines = new LineCounter();
  const document = parse(text, lines);
  const targets = targetsIn(document);
  let node: unknown = document.contents;
  let at: number | undefined;
  for (let rest = path; rest !== "" && isCollection(node); ) {
    // The longest name comes first, because names of hosts contain dots.
    const found = entriesOf(node, targets)
      .filter(([name]) => rest === name || rest.startsWith(`${name}.`) || rest.startsWith(`${name}[`))
      .toSorted(([one], [other]) => other.length - one.length)[0];
    if (found === undefined) break;
    const [name, key, value] = found;
    at = key ?? at;
    node = targetOf(value, targets);
    rest = rest.slice(name.length).replace(/^[.[]/, "").replace("]", "");
  }
  if (at === undefined) return undefined;
  const { line, col } = lines.linePos(at);
  return { line, column: col };
}

type Entry = readonly [name: string, at: number | undefined, value: unknown];

/**
 * Returns name, position and value of each entry of a map or list; merged entries follow the map's
 * own.
 */
function entriesOf(node: unknown, targets: Targets, within: readonly unknown[] = []): Entry[] {
  if (isMap(node)) {
    if (within.includes(node)) return [];
    const own = node.items.flatMap(({ key, value }): Entry[] =>
      isScalar(key) && !isMerge(key) ? [[nameOf(key), key.range?.[0], value]] : [],
    );
    const sources = node.items.filter(({ key }) => isMerge(key)).flatMap((pair) => sourcesOf(pair, targets) ?? []);
    return [...own, ...sources.flatMap((source) => entriesOf(source, targets, [...within, node]))];
  }
  if (!isSeq(node)) return [];
  return node.items.map((item, at): Entry => [String(at), isScalar(item) ? item.range?.[0] : undefined, item]);
}

/** @throws {TextError} */
export function parseYaml(content: string): unknown {
  const lines = new LineCounter();
  const document = parse(content, lines);
  const wrong = (at: number | undefined, what: string) => {
    const { line, col } = lines.linePos(at ?? 0);
    return new TextError(line, col, what);
  };
  const [error] = document.errors;
  if (error !== undefined) throw wrong(error.pos[0], error.message);
  const targets = targetsIn(document);
  const merges: Pair[] = [];
  let first: Alias | undefined;
  visit(document, (_key, node) => {
    if (isAlias(node)) {
      first ??= node;
      if (targets.has(node)) return;
      // The parser's own message would contain the text, which may be a token.
      throw wrong(node.range?.[0], "a value that begins with * refers to an anchor, which is missing: quote it");
    }
    if (isMap(node)) merges.push(...readNames(node, wrong));
  });
  for (const [at, pair] of merges.entries()) {
    const { range } = pair.key as Scalar;
    if (sourcesOf(pair, targets) === undefined) {
      throw wrong(range?.[0], "the value of << must be a map, an alias of a map, or a list of these");
    }
    pair.key = new Scalar(`${MERGE}${at}`);
  }
  // Every alias yields the same object, so the value is no larger than the text.
  const value: unknown = document.toJS({ maxAliasCount: -1 });
  if (targets.size === 0 && merges.length === 0) return value;
  return merged(value, (what) => wrong(first?.range?.[0], what));
}

/**
 * Parses without the check for unique names, which is slow for large maps; `readNames` checks that.
 */
function parse(text: string, lineCounter: LineCounter): Document.Parsed {
  return parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: false });
}

/** The value of each alias: the last value before it with that anchor. */
type Targets = ReadonlyMap<Alias, Node>;

function targetsIn(document: Document): Targets {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, (_key, node) => {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target !== undefined) targets.set(node, target);
    } else if (isNode(node) && "anchor" in node && node.anchor !== undefined) anchors.set(node.anchor, node as Node);
  });
  return targets;
}

function targetOf(value: unknown, targets: Targets): unknown {
  return isAlias(value) ? targets.get(value) : value;
}

/** Returns true for the merge key `<<` of YAML 1.1. A quoted `"<<"` is an ordinary name. */
function isMerge(key: unknown): boolean {
  if (!isScalar(key) || (key.type !== undefined && key.type !== Scalar.PLAIN)) return false;
  return key.value === "<<" || (typeof key.value === "symbol" && key.value.description === "<<");
}

/**
 * Returns the maps that an entry `<<` merges; earlier ones win. Undefined when its value is
 * anything but maps.
 */
function sourcesOf({ value }: Pair, targets: Targets): readonly YAMLMap[] | undefined {
  const source = targetOf(value, targets);
  const sources = isSeq(source) ? source.items.map((item) => targetOf(item, targets)) : [source];
  return sources.every((one) => isMap(one)) ? sources : undefined;
}

/**
 * Returns a name as written: `1.10` and `1.1` are different hosts, though they are the same number.
 */
function nameOf({ value, source }: Scalar): string {
  return typeof value === "string" ? value : (source ?? String(value ?? ""));
}

/**
 * Converts all names of a map to text and returns its entries `<<`.
 * @throws {TextError} when a name is missing, is not text, or occurs twice in the map
 */
function readNames({ items, range }: YAMLMap, wrong: (at: number | undefined, what: string) => TextError): Pair[] {
  const names = new Set<string>();
  const merges: Pair[] = [];
  for (const pair of items) {
    const { key } = pair;
    if (!isScalar(key)) {
      const at = isNode(key) ? key.range?.[0] : undefined;
      throw wrong(at ?? range?.[0], "a name must be text: this is a list, a map or an alias");
    }
    if (isMerge(key)) {
      merges.push(pair);
      continue;
    }
    const name = nameOf(key);
    if (name === "" && typeof key.value !== "string") throw wrong(key.range?.[0], "a name is missing before the colon");
    if (names.has(name))
      throw wrong(
        key.range?.[0],
        `Map keys must be unique: ${JSON.stringify(name)} occurs twice in the map, so merge the two`,
      );
    names.add(name);
    key.value = name;
  }
  return merges;
}
