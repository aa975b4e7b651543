/** The static file server, `mod_http_files` (contract, part 4). */
import type { Handler } from "./routes.ts";

/** What `module.depends<HttpFiles>("http_files")` gives. */
export interface HttpFiles {
  /** A handler for exact and wildcard routes of any method; conditions and ranges are those of GET and HEAD. Spec 4. */
  serve(options: string | ServeOptions): Handler;
}

export interface ServeOptions {
  /** Folder or file to serve. */
  readonly path: string;
  /** List folders without index file; the page comes from the event `directory-index`. Default false. */
  readonly directory_index?: boolean;
  /** Names tried as index of a folder. Default index.html, index.htm. */
  readonly index_files?: readonly string[];
  /** Serve and list names that begin with a dot. Default false. */
  readonly hidden?: boolean;
  /** Extension to Content-Type, before the common table. */
  readonly mime_map?: Readonly<Record<string, string>>;
  /** Seconds for which clients may keep files unasked; without it no Cache-Control is sent. */
  readonly max_age?: number;
}
