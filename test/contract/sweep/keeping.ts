/** Commands for pins, the repository and references. */
import { missingArgument, type Sweep } from "./line.ts";

const add = ["add?pin=false", "to be kept {n}\n"] as const;
const addPinned = ["add", "to be kept {n}\n"] as const;
const verifies = /"Ok":true/;
const announces = {
  test: "a pin that waits for its announcement fails if there are no peers, and a pin without announcement succeeds",
  in: "test/unit/modules/mod_http_api/commands/announcing.test.ts",
};
const repoStat = (path: string) => ({
  "size-only": { call: `${path}?size-only=true`, shows: /"NumObjects":0,"RepoPath":""/ },
  human: { call: `${path}?human=true&encoding=text`, shows: /StorageMax: +10 GB\n/ },
  encoding: { call: `${path}?encoding=text`, shows: /^200 \d+ NumObjects: +\d+\nRepoSize: +\d+\n/ },
});

const keeping: Sweep = {
  "pin/add": {
    "<ipfs-path>": {
      before: [add],
      call: "pin/add?arg={Hash}",
      shows: /"Pins":\["Qm/,
      otherwise: missingArgument("ipfs-path"),
    },
    recursive: {
      before: [add],
      call: "pin/add?arg={Hash}&recursive=false",
      after: ["pin/ls?arg={Hash}"],
      shows: /"Type":"direct"/,
    },
    progress: { before: [add], call: "pin/add?arg={Hash}&progress=true", shows: /"Progress":1\}\n/ },
    name: {
      before: [add],
      call: "pin/add?arg={Hash}&name=kept-{n}",
      after: ["pin/ls?name=kept-{n}"],
      shows: ({ text }, { Hash = "" }) => text.includes(Hash),
    },
    "fast-provide-root": announces,
    "fast-provide-dag": announces,
    "fast-provide-wait": announces,
    encoding: {
      before: [add],
      call: "pin/add?arg={Hash}&encoding=text",
      shows: /^200 \d+ pinned Qm\w+ recursively\n$/,
    },
  },
  "pin/ls": {
    "<ipfs-path>": { call: "pin/ls?arg={dir}", shows: /^200 \d+ [^,]*"Type":"recursive"\}\}[^,]*,?"PinLs/ },
    type: {
      call: "pin/ls?type=indirect",
      shows: ({ text }) => text.startsWith("200 ") && !text.includes('"recursive"'),
    },
    name: { call: "pin/ls?name=no-pin-of-that-name", shows: /^200 \d+ \{"Keys":\{\}/ },
    names: { call: "pin/ls?arg={dir}&names=true", same: true },
    quiet: { call: "pin/ls?arg={dir}&quiet=true&encoding=text", shows: /^200 47 Qm\w+\n$/ },
    stream: { call: "pin/ls?arg={dir}&stream=true", shows: /^200 \d+ \{"Cid":"Qm\w+","Type":"recursive"/ },
    encoding: { call: "pin/ls?arg={dir}&encoding=text", shows: /^200 57 Qm\w+ recursive\n$/ },
  },
  "pin/rm": {
    "<ipfs-path>": {
      before: [addPinned],
      call: "pin/rm?arg={Hash}",
      after: ["pin/ls?arg={Hash}"],
      shows: /is not pinned/,
      otherwise: missingArgument("ipfs-path"),
    },
    recursive: { before: [addPinned], call: "pin/rm?arg={Hash}&recursive=false", shows: /is pinned recursively/ },
    encoding: { before: [addPinned], call: "pin/rm?arg={Hash}&encoding=text", shows: /^200 56 unpinned Qm\w+\n$/ },
  },
  "pin/update": {
    "<from-path>": {
      before: [addPinned],
      call: "pin/update?arg={Hash}&arg={Hash}",
      shows: /"Pins":\["Qm/,
      otherwise: missingArgument("to-path"),
    },
    "<to-path>": {
      before: [addPinned],
      call: "pin/update?arg={Hash}&arg={Hash}",
      shows: /"Pins":\["Qm/,
      otherwise: missingArgument("to-path"),
    },
    unpin: {
      before: [add],
      call: "pin/update?arg={replaced}&arg={Hash}&unpin=false",
      after: ["pin/ls?arg={replaced}"],
      shows: /"recursive"/,
    },
    "fast-provide-root": announces,
    "fast-provide-dag": announces,
    "fast-provide-wait": announces,
    encoding: {
      before: [addPinned],
      call: "pin/update?arg={Hash}&arg={Hash}&encoding=text",
      shows: /^200 \d+ updated Qm\w+ to Qm\w+\n$/,
    },
  },
  "pin/verify": {
    verbose: { call: "pin/verify?verbose=true", shows: verifies },
    quiet: {
      test: "a damaged node of a pinned tree stops a collection before anything is removed",
      in: "test/unit/modules/mod_http_api/faults/disk.test.ts",
    },
    encoding: { call: "pin/verify?verbose=true&encoding=text", shows: /^200 \d+ [Qb]\w+ ok\n/ },
  },
  "repo/gc": {
    "stream-errors": {
      test: "an incomplete pin stops a collection before anything is removed",
      in: "test/unit/modules/mod_http_api/commands/repo.test.ts",
    },
    silent: { before: [add], call: "repo/gc?silent=true", shows: /^200 0 $/ },
    quiet: { before: [add], call: "repo/gc?quiet=true&encoding=text", shows: /^200 \d+ ([Qb]\w+\n)+$/ },
    encoding: { before: [add], call: "repo/gc?encoding=text", shows: /^200 \d+ (removed [Qb]\w+\n)+$/ },
  },
  "repo/stat": repoStat("repo/stat"),
  "stats/repo": repoStat("stats/repo"),
  "repo/fsck": { encoding: { call: "repo/fsck?encoding=text", shows: /^200 \d+ [^{]/ } },
  "repo/verify": { encoding: { call: "repo/verify?encoding=text", shows: /^200 \d+ 1 blocks processed\.\r/ } },
  "repo/version": {
    quiet: { call: "repo/version?quiet=true&encoding=text", shows: /^200 11 fs-repo@11\n$/ },
    encoding: { call: "repo/version?encoding=text", shows: /^200 \d+ ipfs repo version fs-repo@11\n$/ },
  },
  "filestore/dups": {
    encoding: {
      before: [
        ["add?nocopy=true", { content: "twice", abspath: "{data}/twice" }],
        ["block/put?format=raw", "twice"],
        ["add?raw-leaves=true", "twice"],
      ],
      call: "filestore/dups?encoding=text",
      shows: /^200 \d+ bafk\w+\n/,
    },
  },
  "filestore/ls": {
    "<obj>": { call: "filestore/ls?arg={missing}", shows: /"Status":30/ },
    "file-order": { call: "filestore/ls?file-order=true", shows: ({ text }) => inOrder(text) },
    encoding: { call: "filestore/ls?encoding=text", shows: /^200 \d+ (bafk\w+ +\d+ \S+ \d+\n)+$/ },
  },
  "filestore/verify": {
    "<obj>": { call: "filestore/verify?arg={missing}", shows: /"Status":30/ },
    "file-order": { call: "filestore/verify?file-order=true", shows: ({ text }) => inOrder(text) },
    encoding: { call: "filestore/verify?encoding=text", shows: /^200 \d+ ok +bafk\w+ +\d+ \S+ \d+\n/ },
  },
  "urlstore/add": {
    "<url>": { call: "urlstore/add?arg={web}", shows: /"Key":"baf/, otherwise: missingArgument("url") },
    trickle: {
      call: "urlstore/add?arg={web}long&trickle=true",
      after: ["object/stat?arg={Key}"],
      shows: /"NumLinks":(?!1,|2,)/,
    },
    pin: { call: "urlstore/add?arg={web}{n}&pin=false", after: ["pin/ls?arg={Key}"], shows: /is not pinned/ },
    encoding: { call: "urlstore/add?arg={web}&encoding=text", shows: /^200 \d+ baf\w+\n$/ },
  },
};

function inOrder(text: string): boolean {
  const paths = [...text.matchAll(/"FilePath":"([^"]*)"/g)].map(([, path = ""]) => path);
  return paths.length > 3 && paths.every((path, at) => at === 0 || path >= (paths[at - 1] as string));
}

export default keeping;
