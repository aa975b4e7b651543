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
import { domainOf, type Hints, type Item, keyMultihash, keyOfBytes, nameKey, parseRule, type Rule } from "./rule.ts";

/** Bytes of a header; a longer one is no header. */
const MAX_HEADER = 1024 * 1024;
const HEADER_END = "---";
/** Lines of a file that are told of one by one. */
const MAX_TOLD = 20;

/** What is asked for: a path below content, or below a name. */
export interface DenylistQuery {
  readonly kind: "content" | "name";
  readonly key: string;
  /** Without slashes at its ends. */
  readonly path: string;
  /** The texts that double hashes are made of. */
  readonly texts: readonly string[];
}

export class Denylist {
  readonly #content = new Map<string, Rule[]>();
  readonly #names = new Map<string, Rule[]>();
  /** By hash function and digest: the last one of each. */
  readonly #hashed = new Map<number, Map<string, Rule>>();

  get isEmpty(): boolean {
    return this.#content.size + this.#names.size + this.#hashed.size === 0;
  }

  /**
   * Reads a file, in steps that let others have their turn. A line that is no item is told of and
   * passed over.
   *
   * @throws NodeError for a header that cannot be read, Error when the file cannot be
   */
  static async read(file: string, warn: (sentence: string) => void): Promise<Denylist> {
    const list = new Denylist();
    // Lines that may be a header, until its end is found.
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
        if (faults <= MAX_TOLD) warn(`${file}, line ${line} is passed over: ${error.message}`);
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
    if (faults > MAX_TOLD) warn(`${file}: ${counted(faults - MAX_TOLD, "more line is", "more lines are")} passed over`);
    return list;
  }

  #add(item: Item | undefined): void {
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

  /** The last item that matches, exceptions among them. */
  match({ kind, key, path, texts }: DenylistQuery): Rule | undefined {
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

  /** Whether queries need their texts. */
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
