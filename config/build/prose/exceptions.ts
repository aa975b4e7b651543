/** Words that rules of names and prose reject, and that stay in some files, with the reason. */
import type { Finding } from "./rules.ts";

interface Exception {
  readonly path: string;
  readonly words: readonly string[];
  readonly reason: string;
}

const adminField = "a field of the Admin API";
const adminSchema = "a schema of the Admin API, or its topic: clients are generated from them";
const dnsField = "a field of DNS libraries";
const middlewareCount = "a field of the Admin API, and part of the name of a metric";
const position = "a field of the Admin API, and a detail of the error";

const EXCEPTIONS: readonly Exception[] = [
  {
    path: "core/config/load.ts",
    words: ["searchPlaces", "ignoreEmptySearchPlaces"],
    reason: "an option of the library lilconfig",
  },
  { path: "core/http/middleware/layer.ts", words: ["answered"], reason: middlewareCount },
  { path: "core/module/code.ts", words: ["place"], reason: position },
  { path: "core/module/instance.ts", words: ["place"], reason: "a detail of the error OPTION_MISSING" },
  { path: "core/operations/change.ts", words: ["place"], reason: position },
  { path: "core/types/change.ts", words: ["place"], reason: position },
  { path: "core/util/http2.ts", words: ["ENHANCE_YOUR_CALM"], reason: "the name of a code of HTTP/2" },
  { path: "docs/contributing/style.md", words: ["anew", "lent"], reason: "the page lists the words" },
  { path: "modules/mod_backup/run.ts", words: ["place"], reason: adminField },
  { path: "modules/mod_backup/shapes.ts", words: ["place"], reason: adminField },
  { path: "modules/mod_backup/types.ts", words: ["place"], reason: adminField },
  {
    path: "modules/mod_http/metrics.ts",
    words: ["answered", "modhost_http_middleware_answered_total"],
    reason: middlewareCount,
  },
  { path: "modules/mod_http_admin/pages/host/middleware.js", words: ["answered"], reason: middlewareCount },
  { path: "modules/mod_http_admin/pages/host/plan.js", words: ["tell"], reason: "a value in the Admin API" },
  {
    path: "modules/mod_http_admin/shapes.ts",
    words: ["answered", "Figures", "place", "RouteFigures"],
    reason: adminSchema,
  },
  { path: "modules/mod_http_admin/topics.ts", words: ["figures"], reason: adminSchema },
  { path: "modules/mod_http_admin/types.ts", words: ["Figures", "RouteFigures"], reason: adminSchema },
  { path: "modules/mod_http_admin_node/index.ts", words: ["node_figures"], reason: adminSchema },
  { path: "modules/mod_http_admin_node/operations/store.ts", words: ["place"], reason: adminField },
  {
    path: "modules/mod_http_admin_node/shapes.ts",
    words: ["NodeFiguresNow", "PeerAnswer", "place"],
    reason: adminSchema,
  },
  {
    path: "modules/mod_http_admin_node/types.ts",
    words: ["NodeFiguresNow", "PeerAnswer", "place"],
    reason: adminSchema,
  },
  {
    path: "modules/mod_http_compress/metrics.ts",
    words: ["modhost_http_compress_answers_total"],
    reason: "part of the name of a metric",
  },
  { path: "test/browser/dashboard/node.browser.ts", words: ["place"], reason: adminField },
  { path: "test/unit/core/host/failure_page.test.ts", words: ["place"], reason: position },
  { path: "test/unit/core/operations/change.test.ts", words: ["place"], reason: position },
  { path: "test/unit/modules/mod_http_admin_node/shared_store.test.ts", words: ["place"], reason: adminField },
  { path: "test/unit/modules/mod_http_api/commands/names.test.ts", words: ["answers"], reason: dnsField },
  { path: "test/unit/modules/mod_http_gateway/hosts/websites.test.ts", words: ["answers"], reason: dnsField },
  { path: "test/unit/modules/mod_node/network/ipns/dns_txt.test.ts", words: ["answers"], reason: dnsField },
];

export class Exceptions {
  readonly #unused: Map<string, Set<string>>;
  readonly #words: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(exceptions: readonly Pick<Exception, "path" | "words">[] = EXCEPTIONS) {
    this.#words = new Map(exceptions.map(({ path, words }) => [path, new Set(words)]));
    this.#unused = new Map(exceptions.map(({ path, words }) => [path, new Set(words)]));
  }

  /** Removes the findings that an exception allows. */
  filter(path: string, findings: readonly Finding[]): readonly Finding[] {
    const words = this.#words.get(path);
    if (words === undefined) return findings;
    for (const { word } of findings) if (word !== undefined) this.#unused.get(path)?.delete(word);
    return findings.filter(({ word }) => word === undefined || !words.has(word));
  }

  /** Lists exceptions that no finding has needed. Call it after all files have been checked. */
  unused(): Finding[] {
    return [...this.#unused].flatMap(([path, words]) =>
      [...words].map((word) => ({
        line: 0,
        rule: "no finding needs this exception: remove it",
        text: `${path}: ${word}`,
      })),
    );
  }
}
