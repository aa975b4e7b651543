import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_files_dir: {
    type: "path",
    must_exist: true,
    describe: "Folder whose files are served at /files; relative to the config file. If not set, no files are served.",
  },
  http_index_files: {
    type: "strings",
    default: ["index.html", "index.htm"],
    describe: "File names that are tried, in this order, when a folder is requested.",
  },
  http_dir_listing: {
    type: "boolean",
    default: false,
    describe: "List folders that have no index file. A module such as mod_http_dir_listing makes the page.",
  },
  http_files_hidden: {
    type: "boolean",
    default: false,
    describe: "Serve and list files whose names begin with a dot; otherwise they are treated as if they did not exist.",
  },
} as const satisfies OptionDeclarations;
