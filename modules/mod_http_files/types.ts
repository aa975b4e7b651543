/**
 * `import type { HttpFiles } from "modhost/http_files"`: the static file server for other modules
 * (contract, part 4).
 */
import type { Handler } from "../../core/types.ts";

/** The exports of the module, as `module.depends<HttpFiles>("http_files")` returns them. */
export interface HttpFiles {
  /**
   * Returns a handler for exact and wildcard routes of any method. It handles conditions and ranges
   * as for GET and HEAD. Spec 4.
   */
  serve(options: string | ServeOptions): Handler;
}

export interface ServeOptions {
  /** Folder or file to serve. */
  readonly path: string;
  /**
   * Lists folders without an index file. The event `directory-index` makes the page. Default:
   * false.
   */
  readonly directory_index?: boolean;
  /** Names of index files, in order of preference. Default: index.html, index.htm. */
  readonly index_files?: readonly string[];
  /** Serves and lists names that begin with a dot. Default: false. */
  readonly hidden?: boolean;
  /** Maps extensions to Content-Type, with precedence over the common table. */
  readonly mime_map?: Readonly<Record<string, string>>;
  /**
   * Seconds for which clients may use files without revalidation. Without it no Cache-Control is
   * sent.
   */
  readonly max_age?: number;
}
