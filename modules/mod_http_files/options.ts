import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_files_dir: {
    type: "path",
    must_exist: true,
    describe: "Folder whose files are served under /files; relative to the config file. Not set: nothing is served.",
  },
  http_index_files: {
    type: "strings",
    default: ["index.html", "index.htm"],
    describe: "Names tried, in this order, when a folder is asked for.",
  },
  http_dir_listing: {
    type: "boolean",
    default: false,
    describe: "List folders that have no index file; needs a module such as mod_http_dir_listing that makes the page.",
  },
  http_files_hidden: {
    type: "boolean",
    default: false,
    describe: "Serve and list names that begin with a dot; otherwise they are answered as if they did not exist.",
  },
} as const satisfies OptionDeclarations;
