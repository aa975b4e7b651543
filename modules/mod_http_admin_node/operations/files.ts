/** Operations that list, change and show the mutable namespace. */
import { HttpError } from "../../../core/index.ts";
import { contentPath } from "../content_path.ts";
import { locate } from "../contents.ts";
import type { Sort } from "../directories.ts";
import { within } from "../failures.ts";
import { mediaOf } from "../media.ts";
import { pageFields, pageOf } from "../paging.ts";
import type { FilesChange, FilesPage, FilesStat } from "../types.ts";
import { assertFree, filesPath } from "../upload.ts";
import { MAX_PATH_LENGTH, nodeOperation } from "./operation.ts";

const USUAL_PAGE = 200;
const IMPORT_SECONDS = 60;

const path = {
  type: "string",
  required: true,
  describe: "A path of the mutable namespace, such as /photos/a.jpg",
  maxLength: MAX_PATH_LENGTH,
} as const;
const anyPath = {
  ...path,
  describe: "A path of the mutable namespace, or one that begins with /ipfs/ or /ipns/",
} as const;
const to = { ...path, describe: "The whole new path, with its name" } as const;
const replace = { type: "boolean", describe: "Replace an existing file; default: false" } as const;

/** Operations that read the namespace. */
export const filesOperations = [
  nodeOperation({
    name: "node_files",
    method: "GET",
    path: "/node/files",
    scope: "read",
    help: "Entries of a directory, in pages: directories first, unless they are sorted by size",
    input: {
      path: anyPath,
      ...pageFields,
      sort: { type: "string", values: ["name", "size", "type"], describe: "name, size, type; default: name" },
      order: { type: "string", values: ["up", "down"], describe: "up or down; default: up" },
      search: { type: "string", describe: "A part of the names" },
    },
    response: "FilesPage",
    run: async ({ node, directories, input, signal }): Promise<FilesPage> => {
      const found = await locate(node, input.path, signal);
      if (found.type === "file") throw new HttpError(400, `${input.path} is a file`);
      const page = pageOf(input, USUAL_PAGE);
      const search = input.search?.toLowerCase() ?? "";
      const pageRequest = {
        sort: (input.sort ?? "name") as Sort,
        isDown: input.order === "down",
        search,
        signal,
        ...page,
      };
      const { total, entries } = await directories.page(found.cid, pageRequest);
      return { path: input.path, cid: found.cid, total, offset: page.offset, entries };
    },
  }),
  nodeOperation({
    name: "node_files_stat",
    method: "GET",
    path: "/node/files/stat",
    scope: "read",
    help: "The content of a path: CID, type, sizes",
    input: { path: anyPath },
    response: "FilesStat",
    run: async ({ node, input, signal }): Promise<FilesStat> => {
      const { cid, type, size, total, links, name } = await locate(node, input.path, signal);
      const media = type === "file" ? { media_type: mediaOf(name).type } : {};
      return { path: input.path, cid, type, size, total_size: total, links, ...media };
    },
  }),
];

/** Operations that change the namespace. */
export const filesChanges = [
  nodeOperation({
    name: "node_files_mkdir",
    method: "POST",
    path: "/node/files/mkdir",
    scope: "admin",
    help: "Create a directory",
    input: { path, parents: { type: "boolean", describe: "Create missing parent directories, too; default: false" } },
    response: "FilesChange",
    records: (input) => `create the directory ${input.path}`,
    run: async ({ node, input }): Promise<FilesChange> => {
      await node.files.mkdir(filesPath(input.path), { parents: input.parents });
      return { path: input.path };
    },
  }),
  nodeOperation({
    name: "node_files_move",
    method: "POST",
    path: "/node/files/move",
    scope: "admin",
    help: "Move or rename a file or directory",
    input: { from: path, to, replace },
    response: "FilesChange",
    records: (input) => `move ${input.from} to ${input.to}`,
    run: async ({ node, input }): Promise<FilesChange> => {
      await assertFree(node, input.to, input.replace === true);
      await node.files.mv(filesPath(input.from), input.to);
      return { path: input.to };
    },
  }),
  nodeOperation({
    name: "node_files_copy",
    method: "POST",
    path: "/node/files/copy",
    scope: "admin",
    help: "Copy a file or directory; no bytes are copied, both have the same blocks",
    input: { from: { ...path, describe: "The path that is copied" }, to, replace },
    response: "FilesChange",
    records: (input) => `copy ${input.from} to ${input.to}`,
    run: async ({ node, input }): Promise<FilesChange> => {
      await assertFree(node, input.to, input.replace === true);
      await node.files.cp(filesPath(input.from), input.to, { force: input.replace });
      return { path: input.to };
    },
  }),
  nodeOperation({
    name: "node_files_import",
    method: "POST",
    path: "/node/files/import",
    scope: "admin",
    help: "Add content to the namespace by its CID; its blocks are fetched when they are read, or when it is pinned",
    input: {
      cid: {
        type: "string",
        required: true,
        describe: "A CID, or a path such as /ipfs/CID/a or /ipns/NAME",
        maxLength: MAX_PATH_LENGTH,
      },
      to,
      replace,
      timeout: { type: "number", describe: `Seconds to look for its first block; default ${IMPORT_SECONDS}` },
    },
    response: "FilesChange",
    records: (input) => `import ${input.cid} as ${input.to}`,
    run: async ({ node, signal, input: { cid, to: dest, replace: force = false, timeout = IMPORT_SECONDS } }) => {
      await assertFree(node, dest, force);
      const how = { signal: within(signal, timeout) };
      const found = await node.lowLevel.resolve(contentPath(cid), how);
      if (found.remainder.length > 0)
        throw new HttpError(400, `${cid} leads to a value inside a block, and not to a whole block`);
      await node.files.cp(`/ipfs/${found.cid}`, dest, { parents: true, force, ...how });
      return { path: dest, cid: found.cid.toString() } satisfies FilesChange;
    },
  }),
  nodeOperation({
    name: "node_files_remove",
    method: "POST",
    path: "/node/files/remove",
    scope: "admin",
    help: "Remove a file, or a directory with its contents",
    input: { path, recursive: { type: "boolean", describe: "Directories, too; default: false" } },
    response: "FilesChange",
    records: (input) => `remove ${input.path}`,
    run: async ({ node, input }): Promise<FilesChange> => {
      await node.files.rm(filesPath(input.path), { recursive: input.recursive });
      return { path: input.path };
    },
  }),
];
