/** Operations that upload and download files. */
import type { Shown } from "../contents.ts";
import { MAX_PATH_LENGTH, nodeOperation } from "./operation.ts";

const path = {
  type: "string",
  required: true,
  describe: "A path of the mutable namespace, or one that begins with /ipfs/ or /ipns/",
  maxLength: MAX_PATH_LENGTH,
} as const;
const bytes = { type: "string", format: "binary" } as const;

export const contentOperations = [
  nodeOperation({
    name: "node_files_upload",
    method: "POST",
    path: "/node/files/content",
    scope: "admin",
    help: "Upload a file: the body is its bytes. Missing directories are created; an interrupted upload leaves nothing",
    input: {
      path: { ...path, describe: "The whole path of the file in the mutable namespace" },
      replace: { type: "boolean", describe: "Replace an existing file; default: false" },
      cid_version: { type: "number", describe: "Version of its CID: 0, which is the default, or 1" },
    },
    takes: "stream",
    response: "Uploaded",
    run: async ({
      node,
      uploads,
      server,
      by,
      event,
      signal,
      input: { path: file, replace = false, cid_version: cidVersion },
    }) => {
      const { upload } = await import("../upload.ts");
      const uploadRequest = { path: file, body: event.request.body_stream, isReplacing: replace, cidVersion, signal };
      return uploads.during({ path: file, by, server }, () => upload(node, uploadRequest));
    },
  }),
  nodeOperation({
    name: "node_files_content",
    method: "GET",
    path: "/node/files/content",
    scope: "read",
    help: "The bytes of a file, with ranges; content that a browser would run is sent as text, or saved as a file",
    input: {
      path,
      as: {
        type: "string",
        values: ["inline", "download", "text"],
        describe: "inline to show it, download to save it, text to read any content as text; default: inline",
      },
    },
    response: bytes,
    isRaw: true,
    run: async ({ node, event: { request }, signal, input }) => {
      const { fileResponse } = await import("../contents.ts");
      return fileResponse(node, { path: input.path, as: (input.as ?? "inline") as Shown, request, signal });
    },
  }),
  nodeOperation({
    name: "node_files_tar",
    method: "GET",
    path: "/node/files/tar",
    scope: "read",
    help: "A file, or a directory with its contents, as a tar archive",
    input: { path },
    response: bytes,
    isRaw: true,
    run: async ({ node, signal, input }) => (await import("../contents.ts")).tarResponse(node, input.path, signal),
  }),
  nodeOperation({
    name: "node_files_car",
    method: "GET",
    path: "/node/files/car",
    scope: "read",
    help: "The blocks of a file or directory and of all below it, as a CAR archive",
    input: { path },
    response: bytes,
    isRaw: true,
    run: async ({ node, signal, input }) => (await import("../contents.ts")).carResponse(node, input.path, signal),
  }),
];
