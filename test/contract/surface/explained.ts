import { readFileSync } from "node:fs";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";

type Explained = readonly (readonly [reason: string, differences: readonly string[]])[];

const then: Explained = [
  [
    "The reference responds with JSON, and its content types apply where the contract says text/plain",
    ["dag/get: returns a value", "diag/sys: returns a value"],
  ],
  [
    "The contract describes the default in words",
    [
      `cid/format: option f has the default "%s" instead of none`,
      String.raw`files/stat: option format has the default "<hash>\nSize: <size>\nCumulativeSize: <cumulsize>\nChildBlocks: <childs>\nType: <type>" instead of none`,
    ],
  ],
  [
    "Both the contract's neutral words and the reference's own are sent",
    ["mount: IPFS is not in the contract", "mount: IPNS is not in the contract"],
  ],
  [
    "Both the contract's shape and the one that the reference sends are sent",
    [
      "pin/ls: Keys is not in the contract",
      "pin/ls: Cid is not in the contract",
      "pin/ls: Type is not in the contract",
      "pin/verify: Ok is not in the contract",
      "pin/verify: BadNodes is not in the contract",
      "repo/stat: RepoSize is not in the contract",
      "repo/stat: StorageMax is not in the contract",
      "stats/repo: RepoSize is not in the contract",
      "stats/repo: StorageMax is not in the contract",
    ],
  ],
];

const laterLevel: Explained = [
  [
    "The reference responds with JSON, and its content types apply where the contract says text/plain",
    ["diag/sys: returns a value"],
  ],
  [
    "Both the contract's neutral words and the reference's own are sent",
    ["mount: IPFS is not in the contract", "mount: IPNS is not in the contract"],
  ],
  [
    "Both the contract's shape and the one that the reference sends are sent",
    [
      "pin/verify: Ok is not in the contract",
      "pin/verify: BadNodes is not in the contract",
      "repo/stat: RepoSize is not in the contract",
      "repo/stat: StorageMax is not in the contract",
      "stats/repo: RepoSize is not in the contract",
      "stats/repo: StorageMax is not in the contract",
    ],
  ],
  [
    "The node sets the default, because it distinguishes a given value from a missing one",
    [
      'bitswap/wantlist: option peer has the default none instead of "self"',
      "dag/import: option pin-roots has the default none instead of true",
      'name/publish: option ttl has the default none instead of "5m"',
      "name/resolve: option dht-record-count has the default none instead of 16",
      'name/resolve: option dht-timeout has the default none instead of "1m"',
    ],
  ],
  [
    "Options that commands of the same kind have at level 0.9 are accepted here, too",
    [
      "key/ls: option name-base is known to neither contract nor reference",
      "key/sign: option name-base is known to neither contract nor reference",
      "key/verify: option name-base is known to neither contract nor reference",
      "routing/get: option verbose is known to neither contract nor reference",
      "routing/get: option v is known to neither contract nor reference",
      "routing/put: option verbose is known to neither contract nor reference",
      "routing/put: option v is known to neither contract nor reference",
    ],
  ],
  [
    "Options that the reference has for one command of bootstrap are accepted for the whole group, and the command that it removed is served with its new meaning",
    [
      "bootstrap: option expand-auto is known to neither contract nor reference",
      "bootstrap/add: option expand-auto is known to neither contract nor reference",
      "bootstrap/rm: option expand-auto is known to neither contract nor reference",
      "bootstrap/rm/all: option expand-auto is known to neither contract nor reference",
      "bootstrap/add/default: is not in the contract",
    ],
  ],
  [
    "This node does not detect a NAT, and the reference leaves this field out until it has",
    ["swarm/addrs/autonat: nat is missing"],
  ],
  [
    "The contract has fields of the documentation of go-ipfs that Kubo never sends; at this level the fields are those of Kubo",
    ["pin/verify: PinStatus is missing", "repo/stat: SizeStat is missing", "stats/repo: SizeStat is missing"],
  ],
  [
    "The contract has the default of 0.9, but a required argument has none",
    ['files/chcid: argument path has the default none instead of "/"'],
  ],
  [
    "The reference has these only on its command line; here they are served as at level 0.9",
    ["config/edit: is not in the contract", "key/export: is not in the contract", "key/rotate: is not in the contract"],
  ],
];

/**
 * Intended differences of the table from contract or reference: each reason, with the differences
 * that it explains.
 */
export const explained: Readonly<Record<LevelName, Explained>> = { "0.9": then, "0.43": laterLevel };

export const leftFile = new URL("./left-0.43.json", import.meta.url);

/**
 * Differences that still have to be removed. `npm run surface -- --level 0.43 --left` deletes those
 * that no longer exist.
 */
export const leftAt = (level: LevelName): readonly string[] =>
  level === "0.43" ? JSON.parse(readFileSync(leftFile, "utf8")) : [];
