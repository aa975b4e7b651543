/** The items of one denylist file. */

import { setImmediate as nextTurn } from "node:timers/promises";
import { base58btc } from "multiformats/bases/base58";
import { CID } from "multiformats/cid";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { libp2pKey } from "../../formats/cid/codecs.ts";
import { digestHere, loadDigest } from "../../formats/cid/hashes.ts";
import { openPlainFile } from "../../storage/plain_file.ts";
import { ITEMS_PER_STEP } from "../../util/async/steps.ts";
import { counted } from "../../util/counted.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { parseHeader } from "./header.ts";
import { linesOf } from "./lines.ts";
import {
  type DenylistItem,
  type DenylistRule,
  domainOf,
  type Hints,
  keyMultihash,
  keyOfBytes,
  nameKey,
  parseRule,
} from "./rule.ts";

/** Maximum size of a header in bytes. Longer text before `HEADER_END` consists of items. */
const MAX_HEADER = 1024 * 1024;
const HEADER_END = "---";
/** Maximum number of invalid lines of a file that are reported one by one. */
const MAX_REPORTED_LINES = 20;

/** A request to check: a path below content, or below a name. */
export interface DenylistQuery {
  readonly kind: "content" | "name";
  readonly key: string;
  /** The path without slashes at its ends. */
  readonly path: string;
  /** The texts whose hashes may be in the list. */
  readonly texts: readonly string[];
}

export class Denylist {
  readonly #content = new Map<string, DenylistRule[]>();
  readonly #names = new Map<string, DenylistRule[]>();
  /** The last item with each hash, by hash function and digest. */
  readonly #hashed = new Map<number, Map<string, DenylistRule>>();

  get isEmpty(): boolean {
    return this.#content.size + this.#names.size + this.#hashed.size === 0;
  }

  /**
   * Reads a file in steps, so that other work gets its turn. Invalid lines are reported and
   * skipped.
   *
   * @throws NodeError when the header is invalid, Error when the file cannot be read
   */
  static async read(file: string, warn: (sentence: string) => void): Promise<Denylist> {
    const list = new Denylist();
    // Lines that may belong to a header, as long as its end was not found.
    let before: string[] | undefined = [];
    let size = 0;
    let hints: Hints = {};
    let at = 0;
    let faults = 0;
    const take = (text: string | undefined, line: number) => {
      try {
        if (text === undefined) throw failure("DENYLIST_INVALID", { reason: "it is too long" });
        list.#add(parseRule(text, line, hints));
      } catch (error) {
        if (!NodeError.is(error)) throw error;
        faults += 1;
        if (faults <= MAX_REPORTED_LINES) warn(`Skipping line ${line} of ${file}: ${error.message}`);
      }
    };
    const noHeader = () => {
      for (const [index, text] of (before ?? []).entries()) take(text, index + 1);
      before = undefined;
    };
    for await (const text of linesOf((await openPlainFile(file)).createReadStream())) {
      at += 1;
      if (at % ITEMS_PER_STEP === 0) await nextTurn();
      if (before === undefined) {
        take(text, at);
      } else if (text === HEADER_END) {
        hints = await parseHeader(before.join("\n"));
        before = undefined;
      } else {
        size += (text?.length ?? MAX_HEADER) + 1;
        if (size <= MAX_HEADER) before.push(text as string);
        else {
          noHeader();
          take(text, at);
        }
      }
    }
    noHeader();
    for (const code of list.#hashed.keys()) await loadDigest(code);
    const unreported = faults - MAX_REPORTED_LINES;
    if (unreported > 0) warn(`Skipping ${counted(unreported, "more line", "more lines")} of ${file}`);
    return list;
  }

  #add(item: DenylistItem | undefined): void {
    if (item === undefined) return;
    const { rule, by } = item;
    if (by.kind === "hashed") {
      const known = this.#hashed.get(by.code);
      if (known === undefined) this.#hashed.set(by.code, new Map([[by.key, rule]]));
      else known.set(by.key, rule);
      return;
    }
    const rules = by.kind === "content" ? this.#content : this.#names;
    const known = rules.get(by.key);
    if (known === undefined) rules.set(by.key, [rule]);
    else known.push(rule);
  }

  /** Returns the last item that matches. It may be an exception. */
  match({ kind, key, path, texts }: DenylistQuery): DenylistRule | undefined {
    const rules = (kind === "content" ? this.#content : this.#names).get(key);
    let last = rules?.findLast((rule) => (rule.isPrefix ? path.startsWith(rule.path) : path === rule.path));
    for (const [code, hashed] of this.#hashed) {
      for (const text of texts) {
        const rule = hashed.get(keyOfBytes(digestHere(code, Buffer.from(text))));
        if (rule !== undefined && rule.line > (last?.line ?? 0)) last = rule;
      }
    }
    return last;
  }

  /** Whether queries must have their `texts`. */
  get hasHashed(): boolean {
    return this.#hashed.size > 0;
  }
}

const none: readonly string[] = [];
const slashed = (path: string): string => (path === "" ? "" : `/${path}`);

export function contentQuery(cid: CID, path: string, isHashed: boolean): DenylistQuery {
  const key = keyOfBytes(cid.multihash.bytes);
  return { kind: "content", key, path, texts: isHashed ? contentTexts(cid, path) : none };
}

const contentTexts = (cid: CID, path: string): string[] => [
  base58btc.baseEncode(cid.multihash.bytes) + slashed(path),
  `${cid.toV1()}/${path}`,
];

export function nameQuery(name: string, path: string, isHashed: boolean): DenylistQuery {
  return { kind: "name", key: nameKey(name), path, texts: isHashed ? nameTexts(name, path) : none };
}

function nameTexts(name: string, path: string): string[] {
  const multihash = keyMultihash(name);
  if (multihash !== undefined) return contentTexts(CID.createV1(libp2pKey, decodeMultihash(multihash)), path);
  const domain = domainOf(name);
  return [`/ipns/${domain}${slashed(path)}`, `${domain}/${path}`];
}
