/** The urlstore: content that stays behind URLs. */
import type { CID } from "multiformats/cid";
import { addEntries } from "../content/adder/adder.ts";
import { addSettings } from "../content/adder/settings.ts";
import type { AddEntry } from "../content/unixfs/add.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { discard, requestUrl } from "../storage/filestore/http_content.ts";
import { isUrl } from "../storage/filestore/reference.ts";
import { failure } from "../util/errors.ts";
import { type CallOptions, readOptions } from "./common.ts";

export interface UrlstoreAddOptions extends CallOptions {
  /** Use the trickle layout. */
  readonly trickle?: boolean | undefined;
  /** Pin the object; true by default. */
  readonly pin?: boolean | undefined;
}

export interface UrlstoreAddResult {
  readonly key: CID;
  /** Size announced by the server in bytes; -1 if it did not announce one. */
  readonly size: number;
}

export interface UrlstoreApi {
  /**
   * Adds the content of a URL without storing its bytes; they are fetched again whenever they are
   * read.
   *
   * @throws NodeError URLSTORE_OFF or REFERENCES_OFF, and if the URL cannot be fetched
   */
  add(url: string, options?: UrlstoreAddOptions): Promise<UrlstoreAddResult>;
}

export function urlstoreApi(node: LowLevelNode): UrlstoreApi {
  return {
    async add(url, { trickle, pin = true, ...options } = {}) {
      const { signal, offline } = readOptions(options);
      if (!isUrl(url)) throw failure("URL_INVALID", { url });
      if (node.filestore === undefined) throw failure("REFERENCES_OFF");
      if (!node.filestore.takesUrls) throw failure("URLSTORE_OFF");
      const content = await requestUrl(url, { signal });
      const { status, length = -1, body } = content;
      if (status < 200 || status > 299) {
        await discard(content);
        throw failure("URL_NOT_FETCHED", { reason: `got non-2XX status code ${status}: ${url}` });
      }
      const settings = addSettings({ cidVersion: 1, rawLeaves: true, nocopy: true, trickle });
      let root: CID | undefined;
      const entries = one({ path: "", kind: "file", body, backing: url });
      for await (const { built } of addEntries(node, entries, settings, { pin, references: true, signal, offline })) {
        root = built?.cid;
      }
      if (root === undefined) throw new Error("an add has ended without its root");
      return { key: root, size: length };
    },
  };
}

async function* one(entry: AddEntry): AsyncGenerator<AddEntry> {
  yield entry;
}
