/** Words that rules of names and prose reject, and that stay in some files, with the reason. */
import type { Finding } from "./rules.ts";

interface Exception {
  readonly words: readonly string[];
  readonly paths: readonly string[];
  readonly reason: string;
}

const admin = "modules/mod_http_admin";
const adminNode = "modules/mod_http_admin_node";

const EXCEPTIONS: readonly Exception[] = [
  {
    words: ["searchPlaces", "ignoreEmptySearchPlaces"],
    paths: ["core/config/load.ts"],
    reason: "options of the library lilconfig",
  },
  { words: ["ENHANCE_YOUR_CALM"], paths: ["core/util/http2.ts"], reason: "an error code of RFC 9113" },
  {
    words: ["answers"],
    paths: ["test/unit/modules/mod_node/network/ipns/dns_txt.test.ts"],
    reason: "a field of DNS messages in the library dns-packet",
  },
  {
    words: ["lent", "anew"],
    paths: ["docs/contributing/style.md"],
    reason: "the page lists the words to avoid",
  },
  {
    words: ["place"],
    paths: [
      "core/types/change.ts",
      "core/operations/change.ts",
      "core/module/code.ts",
      "core/module/instance.ts",
      `${admin}/shapes.ts`,
      "modules/mod_node/storage/shared/pairing.ts",
    ],
    reason: "a field of `error.details`, which the Admin API sends",
  },
  {
    words: ["place"],
    paths: ["modules/mod_backup/run.ts", "modules/mod_backup/shapes.ts", "modules/mod_backup/types.ts"],
    reason: "a field of the Admin API: the location of a backup",
  },
  {
    words: ["place"],
    paths: [
      `${adminNode}/operations/store.ts`,
      `${adminNode}/shapes.ts`,
      `${adminNode}/types.ts`,
      "test/browser/dashboard/node.browser.ts",
    ],
    reason: "a field of the Admin API: the address of a store",
  },
  {
    words: ["answered"],
    paths: [
      "core/http/middleware/layer.ts",
      "modules/mod_http/metrics.ts",
      `${admin}/shapes.ts`,
      `${admin}/pages/host/middleware.js`,
    ],
    reason: "a field of the Admin API: requests to which a middleware responded",
  },
  {
    words: ["modhost_http_middleware_answered_total"],
    paths: ["modules/mod_http/metrics.ts"],
    reason: "the name of a metric in dashboards",
  },
  {
    words: ["modhost_http_compress_answers_total"],
    paths: ["modules/mod_http_compress/metrics.ts"],
    reason: "the name of a metric in dashboards",
  },
  {
    words: ["Figures", "RouteFigures"],
    paths: [`${admin}/shapes.ts`, `${admin}/types.ts`],
    reason: "the name of a schema in the Admin API's OpenAPI document",
  },
  {
    words: ["NodeFiguresNow", "PeerAnswer"],
    paths: [`${adminNode}/shapes.ts`, `${adminNode}/types.ts`],
    reason: "the name of a schema in the Admin API's OpenAPI document",
  },
  {
    words: ["figures"],
    paths: [`${admin}/topics.ts`],
    reason: "the name of a topic of the Admin API",
  },
  {
    words: ["node_figures"],
    paths: [`${adminNode}/index.ts`],
    reason: "the name of a topic of the Admin API",
  },
  {
    words: ["tell"],
    paths: [`${admin}/pages/host/plan.js`],
    reason: "an effect in the plans of the Admin API",
  },
  {
    words: ["PEER_NOT_ASKED"],
    paths: ["modules/mod_node/util/failures/calls.ts", "modules/mod_http_api/rpc/levels.ts"],
    reason: "a code of NodeError",
  },
  {
    words: ["Lending", "SharedStoreFigures"],
    paths: ["modules/mod_node/index.ts"],
    reason: "an export of modhost/node",
  },
  {
    words: ["SharedStoreFigures"],
    paths: ["modules/mod_node/migration/open_stores/visit_shared.ts"],
    reason: "an export of modhost/node",
  },
];

export class Exceptions {
  readonly #unused: Map<string, Set<string>>;
  readonly #words: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(exceptions: readonly Pick<Exception, "paths" | "words">[] = EXCEPTIONS) {
    const pairs = exceptions.flatMap(({ paths, words }) => paths.map((path) => [path, words] as const));
    const byPath = Map.groupBy(pairs, ([path]) => path);
    const copy = () => new Map([...byPath].map(([path, own]) => [path, new Set(own.flatMap(([, words]) => words))]));
    this.#words = copy();
    this.#unused = copy();
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
