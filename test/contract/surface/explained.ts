/** Where the table differs from contract or reference on purpose: the reason, and the differences that it explains. */
export const explained: readonly (readonly [reason: string, differences: readonly string[]])[] = [
  [
    "The reference answers in JSON, and its content types hold where the contract says text/plain",
    ["dag/get: returns a value", "diag/sys: returns a value"],
  ],
  [
    "The default that the contract tells in words",
    [
      `cid/format: option f has the default "%s" instead of none`,
      String.raw`files/stat: option format has the default "<hash>\nSize: <size>\nCumulativeSize: <cumulsize>\nChildBlocks: <childs>\nType: <type>" instead of none`,
    ],
  ],
  [
    "The contract's neutral words and the reference's own are both sent",
    ["mount: IPFS is not in the contract", "mount: IPNS is not in the contract"],
  ],
  [
    "The contract's shape and the one that the reference sends are both sent",
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
