/**
 * Members with a leading `_` are internals of Node.js or of a library. Only files in folders named
 * `patches` may use them.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Methods that Node documents for implementing a stream. On a stream of one's own they are not
 * internals.
 */
const implemented = /\boverride _(?:read|write|writev|transform|flush|final|construct|destroy)\(|\bsuper\._destroy\(/g;

/** Files that may use such members, each with the reason. */
const exceptions: Readonly<Record<string, string>> = {
  "core/http/message/body.ts":
    "counts the bytes of a body that middleware reads, by wrapping the functions of every stream",
  "core/http/middleware/classic_messages.ts": "a message of the host's own, made as a stream",
  "core/http/middleware/middleware.ts": "a message of the host's own, made as a stream",
  "core/http/message/multipart/parser.ts": "a parser that extends formidable's, which is a stream",
  "core/isolation/network/carried_socket.ts":
    "a socket that code in a sandbox has made, given the functions of a stream that the host carries",
  "core/isolation/output.ts": "streams of a worker, which it writes to in larger pieces",
  "modules/mod_node/api/candidates.ts": "recognizes streams of other packages by their members",
  "modules/mod_node/network/kad/record_store.ts": "extends a class of the library, which declares it for that",
  "modules/mod_packages/registry/libraries.ts": "reads the fields of a manifest as pacote documents them",
};

/**
 * Matches these names as keys that are destructured or assigned. A parameter may begin with `_` for
 * another reason.
 */
const keys = /[{,]\s*_(?:read|writev?|destroy|transform|handle|parent|paused|header|events|httpMessage)\s*[:(,}]/;

function usesInsides(source: string): boolean {
  const code = source
    .replace(/^\s*(?:\/\/|\/?\*).*$/gm, "")
    .replace(/`[^`]*`|"[^"\n]*"/g, '""')
    .replace(implemented, "");
  return /[.?]_[a-zA-Z]/.test(code) || keys.test(code);
}

test("uses of members with a leading _ are found, except in streams of one's own", () => {
  for (const source of [
    "socket._handle.fd;",
    "const { _handle: handle } = socket;",
    "x?._parent;",
    "Object.assign(a, { _read: b });",
  ])
    assert.ok(usesInsides(source), source);
  for (const source of ["override _read(): void {}", "// of _handle", 'const text = "._handle";', "const _unused = 1;"])
    assert.ok(!usesInsides(source), source);
});

test("only folders named patches use internals of Node.js and of libraries", () => {
  const files = globSync("{core,modules}/**/*.ts", { cwd: root }).filter((file) => !file.includes("/patches/"));
  const found = files.filter((file) => usesInsides(readFileSync(join(root, file), "utf8")));
  assert.deepEqual(found.sort(), Object.keys(exceptions).sort());
});
